from django.contrib import admin
from django.http import JsonResponse, StreamingHttpResponse
from django.urls import path


def seen(request):
    forwarded = request.headers.get("x-forwarded-for")
    return JsonResponse({"scheme": request.scheme, "host": request.get_host(), "for": forwarded})


def export(request):
    return StreamingHttpResponse((f"{line},{line * line}\n" for line in range(20000)), content_type="text/csv")


urlpatterns = [path("admin/", admin.site.urls), path("seen/", seen), path("export/", export)]
