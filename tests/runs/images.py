"""Runs from images that lie in files: every form, the layers as they are meant, what is refused. runs.py has the scenarios."""

import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import image_files
from harness import Wrong, equal

SCENARIOS = {}
CACHE = Path("/var/lib/benchsand/images")


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


def tiny_layers(bench):
    """A layer with the tiny rootfs, and one that changes it: a file hidden, one replaced, a directory emptied."""
    lower = image_files.layer(("gone", b"lower"), ("kept", b"lower"), ("full", None), ("full/a", b"lower"),
                              folder=bench.cache / "tiny-rootfs")
    upper = image_files.layer((".wh.gone", b""), ("kept", b"upper"), ("full/.wh..wh..opq", b""), ("full/b", b"upper"),
                              ("seen", tarfile.SYMTYPE, "/kept"))
    return [lower, upper]


LOOK = "ls / | tr '\\n' ' '; echo; cat /seen; ls full; pwd"


def run_image(bench, reference, **keys):
    task = bench.write_task(["/bin/sh", "-c", LOOK], workdir="/", image=reference, **keys)
    task.write_text("\n".join(line for line in task.read_text().splitlines() if not line.startswith("rootfs:")) + "\n")
    return bench.run_task(task)


def forget(image):
    shutil.rmtree(CACHE / image.digest[7:], ignore_errors=True)


@scenario
def images_of_every_form_run(bench):
    image = image_files.Image(tiny_layers(bench), compress=True, Env=["PATH=/x", "A=b"], Entrypoint=["/app"], User="1000",
                              WorkingDir="/srv", Volumes={"/data": {}})
    other = image_files.Image([image_files.layer(("other", b""))])
    layout = image_files.write_layout(bench.work / "layout", {"v1": image, "v2": other})
    with tarfile.open(bench.work / "layout.tar", "w") as tar:
        for name in ("oci-layout", "index.json", "blobs"):
            tar.add(layout / name, arcname=name)
    image_files.write_docker_archive(bench.work / "saved.tar", image_files.Image(image.plain, **json.loads(image.config)["config"]))
    subprocess.run(["gzip", "-k", bench.work / "saved.tar"], check=True)
    forget(image)
    try:
        for reference in (f"oci:{layout}:v1", "oci:./layout:v1", "oci:layout.tar:v1", f"oci:layout.tar:v1@{image.digest}",
                          f"oci:layout.tar@{image_files.sha256(image.manifest)}", "docker-archive:saved.tar",
                          "docker-archive:saved.tar:app:1", f"docker-archive:saved.tar.gz@{image.digest}"):
            run = run_image(bench, reference).expect(0, "succeeded", "exited", exit_code=0)
            names, *rest = run.stdout().splitlines()
            equal("gone, kept", ("gone" in names.split(), "kept" in names.split()), (False, True))
            equal("what is inside", rest, ["upperb", "/"])
            decided = run.record["policy"]["image"]
            equal("digest", decided["digest"], image.digest)
            equal("reference", Path(decided["reference"].split(":")[1]).is_absolute(), True)
            notices = "\n".join(run.record["notices"])
            for part in ('ENTRYPOINT ["/app"]', 'PATH is not used, "/x"', '"A"', 'USER "1000"', 'WORKDIR "/srv"', 'VOLUME ["/data"]'):
                if part not in notices:
                    raise Wrong(f"no notice has {part}: {notices}")
    finally:
        forget(image)


@scenario
def an_image_that_is_not_what_it_says_never_runs(bench):
    image = image_files.Image(tiny_layers(bench))
    layout = image_files.write_layout(bench.work / "changed", {"v1": image})
    blob = layout / "blobs/sha256" / image_files.sha256(image.blobs[1])[7:]
    wrong = "sha256:" + "0" * 64
    forget(image)
    run = run_image(bench, f"oci:changed@{wrong}")
    equal("wrong pin", (run.status, run.record, "benchsand: check " in run.stderr and f"expected the digest {wrong}, found sha256:" in run.stderr and
                        "; get the image again, or change the digest in the task\n" in run.stderr), (2, None, True))
    blob.write_bytes(image.blobs[1] + b"\0" * 512)
    run = run_image(bench, "oci:changed")
    found = image_files.sha256(blob.read_bytes())
    equal("changed layer", (run.status, run.record), (2, None))
    if f"expected the digest {image_files.sha256(image.blobs[1])}, found {found}" not in run.stderr:
        raise Wrong(run.stderr)
    equal("nothing is kept", [name for name in CACHE.iterdir() if image.digest[7:] in name.name], [])


def entries_of(folder):
    """All that a run could have changed there."""
    return {str(path.relative_to(folder)): (facts.st_mode, facts.st_uid, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns,
                                            path.read_bytes() if path.is_file() and not path.is_symlink() else b"")
            for path in (folder, *folder.rglob("*")) for facts in [path.lstat()]}


@scenario
def what_one_task_needs_the_next_does_not_find(bench):
    """Mount points that an image or archive lacks: the next task, of a different author, must see and change the same as ever."""
    private = tarfile.TarInfo("private")
    private.type, private.mode, private.uid, private.mtime = tarfile.DIRTYPE, 0o2755, 7, 12345
    plain = image_files.layer(private, ("private/kept", b"lower"), folder=bench.cache / "tiny-rootfs")
    image = image_files.Image([plain])
    image_files.write_layout(bench.work / "clean", {"v1": image})
    (bench.work / "rootfs.tar").write_bytes(plain)
    (bench.work / "hello").write_text("hello")
    folders = [CACHE / image.digest[7:] / "rootfs", CACHE.parent / "rootfs" / image_files.sha256(plain)[7:]]
    forget(image)
    shutil.rmtree(folders[1], ignore_errors=True)

    def run(reference, **keys):
        look = "ls -a / /bin /opt /private; stat -c '%n %a %u %g %Y %F' / /bin /private; cat /bin/hello"
        if reference.endswith(".tar"):
            return bench.run_task(bench.write_task(["/bin/sh", "-c", look], workdir="/", rootfs=reference, **keys))
        task = bench.write_task(["/bin/sh", "-c", look], workdir="/", image=reference, **keys)
        task.write_text("\n".join(line for line in task.read_text().splitlines() if not line.startswith("rootfs:")) + "\n")
        return bench.run_task(task)
    try:
        for reference, folder in zip(("oci:./clean", str(bench.work / "rootfs.tar")), folders):
            before = run(reference)
            unpacked = entries_of(folder)
            with_places = run(reference, output="/opt/evil/deep",
                              inputs=[{"source": "hello", "target": "/bin/hello"}, {"source": "hello", "target": "/private/new/x"}])
            after = run(reference)
            equal("what the next one sees", after.stdout(), before.stdout())
            equal("what is unpacked", entries_of(folder), unpacked)
            equal("its own places", [part in with_places.stdout() for part in ("\nhello", "evil", "new", "kept")], [True] * 4)
            equal("how it looks", [line for line in with_places.stdout().splitlines() if line.startswith(("/ ", "/bin ", "/private "))],
                  [line for line in before.stdout().splitlines() if line.startswith(("/ ", "/bin ", "/private "))])
            equal("/private", [words[1:2] + words[4:] for line in with_places.stdout().splitlines()
                               for words in [line.split()] if line.startswith("/private ")], [["2755", "12345", "directory"]])
    finally:
        forget(image)
        shutil.rmtree(folders[1], ignore_errors=True)


@scenario
def an_image_without_a_command_suggests_its_own(bench):
    image = image_files.Image(tiny_layers(bench), Entrypoint=["/bin/sh"], Cmd=["-c", "true"])
    image_files.write_layout(bench.work / "suggests", {"v1": image})
    task = bench.work / "task.yaml"
    task.write_text("benchsand: 1\nname: t\nimage: oci:./suggests\n")
    run = bench.run_task(task)
    equal("status", run.status, 2)
    equal("said", run.stderr.splitlines()[-1], 'the image itself would start command: ["/bin/sh", "-c", "true"]')
    if 'key "command" is missing' not in run.stderr:
        raise Wrong(run.stderr)
