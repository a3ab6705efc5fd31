"""What continuous integration and a release run: pinned, with no more rights than they need, the same as at home."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import srwm
from tools.check_package import problem_of_tag

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
}
# In YAML 1.1 the key `on` is a truth value.
ON = True


def steps(workflow):
    return [step for job in WORKFLOWS[workflow]["jobs"].values() for step in job.get("steps", [])]


def test_the_workflows_are_these():
    assert sorted(WORKFLOWS) == ["ci", "docs", "release"]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_of_others_are_pinned_by_the_hash_of_a_commit(name):
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    for action, comment in used:
        assert action.startswith("./") or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), action
        assert action.startswith("./") or re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_may_read_and_a_checkout_keeps_no_credentials(name):
    assert WORKFLOWS[name]["permissions"] == {"contents": "read"}
    for step in steps(name):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"] == {"persist-credentials": False}


def test_only_the_jobs_that_publish_get_an_identity_and_each_has_an_environment():
    granted = {
        (name, job): content["permissions"]
        for name, workflow in WORKFLOWS.items()
        for job, content in workflow["jobs"].items()
        if "permissions" in content
    }
    assert granted == {
        ("docs", "deploy"): {"id-token": "write", "pages": "write"},
        ("release", "publish"): {"id-token": "write"},
    }
    assert WORKFLOWS["release"]["jobs"]["publish"]["environment"] == "pypi"
    assert WORKFLOWS["docs"]["jobs"]["deploy"]["environment"]["name"] == "github-pages"


def test_a_release_comes_of_a_tag_alone_and_after_all_of_continuous_integration():
    assert WORKFLOWS["release"][ON] == {"push": {"tags": ["v*"]}}
    jobs = WORKFLOWS["release"]["jobs"]
    assert jobs["ci"]["uses"] == "./.github/workflows/ci.yml"
    assert (jobs["build"]["needs"], jobs["publish"]["needs"]) == ("ci", "build")


def test_what_runs_there_runs_at_home():
    named = {word for name in WORKFLOWS for step in steps(name) if "run" in step for word in [step["run"]]}
    assert named == {
        ".ci/run",
        ".ci/versions ${{ matrix.versions }}",
        "make docs",
        "make package",
        'make package TAG="$GITHUB_REF_NAME"',
    }
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in ("docs", "package", "test"))
    assert "exec make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_every_python_that_is_claimed_is_tested():
    claimed = [
        line.rpartition(" ")[2] for line in PYPROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", line)
    ]
    assert WORKFLOWS["ci"]["jobs"]["test"]["strategy"]["matrix"]["python"] == claimed
    assert PYPROJECT["project"]["requires-python"] == f">={claimed[0]}"


def test_the_oldest_packages_that_are_tested_are_the_lower_bounds():
    bounds = [Requirement(text) for text in PYPROJECT["project"]["dependencies"]]
    wanted = sorted(f"{bound.name}=={next(iter(bound.specifier)).version}" for bound in bounds)
    lines = (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")] == wanted


def test_every_extra_that_a_sentence_names_is_there():
    named = {
        extra
        for path in (ROOT / "src").rglob("*.py")
        for extra in re.findall(r"srwm\\*\[(\w+)\\*\]", path.read_text(encoding="utf-8"))
    }
    assert {"demo", "export", "hub", "cluster", "plot"} <= named
    assert named <= set(PYPROJECT["project"]["optional-dependencies"])


def test_a_tag_is_released_only_with_the_version_and_a_date_in_the_changelog():
    changelog = "# Changelog\n\n## [0.2.0] - 2026-12-01\n"
    assert problem_of_tag("v0.2.0", "0.2.0", changelog) is None
    assert problem_of_tag("v0.2.1", "0.2.0", changelog) == (
        "the tag is 'v0.2.1'; expected 'v0.2.0', the version in src/srwm/__init__.py"
    )
    for not_yet in ("## [Unreleased]\n\n0.2.0\n", "## [0.2.0] - soon\n", "## [0.2.0]\n"):
        assert problem_of_tag("v0.2.0", "0.2.0", not_yet) == "CHANGELOG.md has no line '## [0.2.0] - YYYY-MM-DD'"


def test_the_changelog_begins_with_what_this_version_is_or_will_be():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first = re.search(r"^## .*$", text, re.MULTILINE)[0]
    assert first == "## [Unreleased]" or first.startswith(f"## [{srwm.__version__}] - ")
