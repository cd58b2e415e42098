from django.contrib import admin

from shop.models import Document

admin.site.register(Document)
