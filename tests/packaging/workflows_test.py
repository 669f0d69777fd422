#!/usr/bin/env python3
"""Judges .github/workflows, which nothing here can run.

    workflows_test.py --source DIR                        compares them with the tree and with each other
    workflows_test.py --source DIR --build DIR --schema   judges them by GitHub's schema

Each rule is also shown a workflow that breaks it, and must say so. The schema comes with check-jsonschema, from the Python
registry; without it --schema says so and is skipped (77).
"""

import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile

import yaml

import manifests_test

FOLDER = ".github/workflows"
PINNED = re.compile(r"^[\w-]+/[\w-]+@[0-9a-f]{40}$")
OF_GITHUB = ("github.token", "github.ref_name", "github.repository", "github.workspace")
READ_ONLY = {"contents": "read"}

# What breaks a rule: (workflow, what it has, what is put in its place, words of what must be said).
BROKEN = (
    ("on_debian.yml", "debian:12", "debian:11", "debian:11"),
    ("on_debian.yml", "@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2", "@v4", "is not pinned"),
    ("on_debian.yml", " # v4.6.2", "", "does not say which version"),
    ("on_debian.yml", "run: ${{ inputs.command }}", "run: ${{ inputs.comand }}", "inputs.comand"),
    ("on_debian.yml", "  workflow_call:\n", "  workflow_dispatch:\n", "cannot be called"),
    ("on_debian.yml", "install -y", "install -y (", "is no bash"),
    ("ci.yml", "command: .ci/run", "command: .ci/runs", ".ci/runs"),
    ("ci.yml", "contents: read", "contents: write", "permissions"),
    ("ci.yml", "      artifact: logs\n", "", "wants ['artifact'"),
    ("ci.yml", "on_debian.yml", "on_ubuntu.yml", "on_ubuntu.yml"),
    ("ci.yml", "  pull_request:\n", "", "is run at"),
    ("release.yml", "needs: make", "needs: build", "needs build"),
    ("release.yml", "needs: [ci, all-tests, device]", "needs: [ci, all-tests]", "without all tests"),
    ("release.yml", "command: ./dev release", "command: ./dev publish", "./dev publish"),
    ("release.yml", "build/release/dist", "build/dist", "build/dist"),
    ("release.yml", "tags: ['v*']", "tags: ['*']", "is run at"),
    ("release.yml", "          name: dist\n", "          name: dists\n", "dists"),
    ("release.yml", "github.token", "github.tokens", "github.tokens"),
)


def list_of(value):
    return value if isinstance(value, list) else [value]


def read(source):
    """The text of each workflow, by the name of its file."""
    texts = {}
    for path in glob.glob(f"{source}/{FOLDER}/*"):
        with open(path, encoding="utf-8") as file:
            texts[os.path.basename(path)] = file.read()
    return texts


def is_bash(script):
    return subprocess.run(["bash", "-n"], input=re.sub(r"\$\{\{.*?\}\}", "true", script), text=True, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


class Judge:
    def __init__(self, texts, source):
        self.texts = texts
        # BaseLoader: all scalars are strings, and `on` is not true.
        self.workflows = {name: yaml.load(text, yaml.BaseLoader) for name, text in texts.items()}
        self.source = source
        self.problems = []

    def check(self, condition, name, what):
        if not condition:
            self.problems.append(f"{name}: {what}")

    def inputs_of(self, name):
        """The inputs of a workflow that others call, or None."""
        triggers = self.workflows[name]["on"]
        if "workflow_call" not in triggers:
            return None
        return (triggers["workflow_call"] or {}).get("inputs", {})

    def judge(self):
        for name, workflow in self.workflows.items():
            self.check(workflow["permissions"] == READ_ONLY, name, f"permissions are {workflow['permissions']}")
            self.expressions(name)
            for job, it in workflow["jobs"].items():
                for needed in list_of(it.get("needs", [])):
                    self.check(needed in workflow["jobs"], name, f"{job} needs {needed}, which is no job")
                if "uses" in it:
                    self.call(name, it)
                else:
                    self.steps(name, job, it)
        self.purpose()
        return self.problems

    def expressions(self, name):
        known = {f"inputs.{it}" for it in self.inputs_of(name) or {}} | set(OF_GITHUB)
        for expression in re.findall(r"\$\{\{(.*?)\}\}", self.texts[name]):
            self.check(expression.strip() in known, name, f"{expression.strip()} is not known")

    def call(self, name, job):
        called = job["uses"].removeprefix(f"./{FOLDER}/")
        if called not in self.workflows:
            self.check(False, name, f"there is no {called}")
            return
        inputs, given = self.inputs_of(called), set(job.get("with", {}))
        if inputs is None:
            self.check(False, name, f"{called} cannot be called")
            return
        self.check(given == set(inputs), name, f"{called} wants {sorted(inputs)}, not {sorted(given)}")
        self.command(name, job["with"]["command"])

    def command(self, name, command):
        """A program of the tree; of ./dev, a command that it has."""
        program, *words = command.split()
        there = os.access(f"{self.source}/{program}", os.X_OK)
        if there and program == "./dev":
            said = subprocess.run([f"{self.source}/dev", "help"], stdout=subprocess.PIPE, text=True, check=True).stdout
            there = re.search(rf"^  {' '.join(words)} ", said, re.MULTILINE)
        self.check(there, name, f"there is no {command}")

    def steps(self, name, job, it):
        self.check(job == "publish" or it.get("permissions", READ_ONLY) == READ_ONLY, name, f"permissions of {job}")
        for step in it["steps"]:
            self.check(("run" in step) != ("uses" in step), name, f"{step} runs nothing, or two things")
            self.check(is_bash(step.get("run", "")), name, f"{step.get('run')} is no bash")
            if "uses" in step:
                self.check(PINNED.match(step["uses"]), name, f"{step['uses']} is not pinned to a commit")
                self.check(re.search(rf"{re.escape(step['uses'])} # v\d+(\.\d+)*$", self.texts[name], re.MULTILINE), name,
                           f"{step['uses']} does not say which version that is")

    def purpose(self):
        """They do what the documents say."""
        image = self.workflows["on_debian.yml"]["jobs"]["run"]["container"]["image"]
        with open(f"{self.source}/README.md", encoding="utf-8") as file:
            self.check(image.replace("debian:", "Debian ") in file.read(), "on_debian.yml", f"README.md does not speak of {image}")
        triggers = self.workflows["ci.yml"]["on"]
        self.check(set(triggers) == {"push", "pull_request"}, "ci.yml", f"is run at {triggers}")
        triggers = self.workflows["release.yml"]["on"]
        self.check(triggers == {"push": {"tags": ["v*"]}}, "release.yml", f"is run at {triggers}")
        jobs = self.workflows["release.yml"]["jobs"]
        made, publish = jobs["make"], jobs["publish"]
        self.check({"ci", "all-tests", "device"} <= set(list_of(made["needs"])), "release.yml", "a release is made without all tests")
        self.check(made["with"]["path"] == "build/release/dist/*", "release.yml", f"keeps {made['with']['path']}")
        fetched = publish["steps"][0]["with"]["name"]
        self.check(made["with"]["artifact"] == fetched, "release.yml", f"publishes {fetched}")


def check_tree(source):
    texts = read(source)
    problems = Judge(texts, source).judge()
    manifests_test.check(not problems, problems)
    for name, had, has, wanted in BROKEN:
        manifests_test.check(had in texts[name], f"{name} has no {had!r} to be broken")
        problems = Judge(texts | {name: texts[name].replace(had, has)}, source).judge()
        manifests_test.check(any(wanted in it for it in problems), f"{name} with {has!r} for {had!r}: {problems}")
    print(f"{len(texts)} workflows are as they should be, and {len(BROKEN)} broken ones are refused")


def check_schema(source, build):
    tools = manifests_test.install_tools(source, build)
    with tempfile.TemporaryDirectory(prefix="gannet-workflows-") as work:
        for name, text in read(source).items():
            for path, text_of_it, right in ((f"{work}/{name}", text, True), (f"{work}/wrong-{name}", text.replace("jobs:", "job:"), False)):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text_of_it)
                done = manifests_test.run(f"{tools}/check-jsonschema", "--builtin-schema", "vendor.github-workflows", path)
                manifests_test.check((done.returncode == 0) == right, f"{path}: {done.stdout}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--source", required=True)
    parser.add_argument("--build")
    parser.add_argument("--schema", action="store_true")
    options = parser.parse_args()
    if options.schema:
        check_schema(options.source, options.build)
    else:
        check_tree(options.source)


if __name__ == "__main__":
    main()
