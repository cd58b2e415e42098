#!/usr/bin/python3
"""Applications that others wrote, behind nginx and behind kettle with the same file. `cargo xtask applications` calls this in a
network of its own (`alone.sh`), and installs before what it needs."""

import argparse
import importlib
import json
import pathlib
import subprocess
import time
import traceback

import stage

NAMES = ["registry", "gitea", "wordpress", "jupyterlab", "django", "events", "oauth2_proxy"]
STEPS = ["login", "upload", "download", "live"]


def visited(application, on_stage):
    """Does all that a visitor does; what each step led to."""
    results = {}
    for step in STEPS:
        act = getattr(application, step, None)
        if act is None:
            results[step] = "–"
            continue
        begun = time.monotonic()
        try:
            act()
            results[step] = "passed"
        except Exception as error:  # Whatever it is, the other steps are tried.
            results[step] = f"failed: {str(error) or type(error).__name__}"[:600]
            if not isinstance(error, (stage.Fault, AssertionError)):
                traceback.print_exc()
        stage.say(f"    {step}: {results[step]} ({time.monotonic() - begun:.1f} s)")
    return results


def attempt(name, front, arguments):
    """One application behind one front end."""
    on_stage = stage.Stage(pathlib.Path(arguments.parts), arguments.kettle)
    module = importlib.import_module(f"programs.{name}")
    result = {"application": module.TITLE, "name": name, "front": front}
    stage.say(f"{name} behind {front}")
    try:
        application = module.Application(on_stage)
        result["version"] = application.version()
        on_stage.prepare(module.SITE, module.HOSTS, {})
        application.start()
        if front == "nginx":
            on_stage.nginx()
        else:
            result["import"] = vars(on_stage.imported())
        result["steps"] = visited(application, on_stage)
    except (stage.Fault, subprocess.TimeoutExpired, OSError) as error:
        stage.say(f"    {error}")
        result["steps"] = {step: f"failed: {error}"[:600] for step in STEPS}
    finally:
        on_stage.end()
        if arguments.logs:
            keep_logs(pathlib.Path(arguments.logs) / f"{name}-{front}")
    return result


def keep_logs(folder):
    folder.mkdir(parents=True, exist_ok=True)
    logs = list((stage.SRV / "log").glob("*")) + list(pathlib.Path("/var/log/nginx").glob("*")) + [stage.SRV / "kettle.toml"]
    for log in logs:
        if log.is_file():
            (folder / log.name).write_bytes(log.read_bytes())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kettle", required=True)
    parser.add_argument("--parts", required=True, help="the folder with what xtask has installed")
    parser.add_argument("--results", required=True, help="a file for what came of it, in JSON")
    parser.add_argument("--logs", help="a folder for what the programs said")
    parser.add_argument("--front", choices=["nginx", "kettle"], action="append")
    parser.add_argument("names", nargs="*", default=NAMES)
    arguments = parser.parse_args()
    results = [attempt(name, front, arguments) for name in arguments.names for front in arguments.front or ["nginx", "kettle"]]
    pathlib.Path(arguments.results).write_text(json.dumps(results, indent=1))
    return 1 if any(step.startswith("failed") for result in results for step in result["steps"].values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
