"""Images as files, made without an engine: layers as tar archives, an OCI layout, an archive as `docker save` writes it."""

import gzip
import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

OCI = "application/vnd.oci.image"


def sha256(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer(*entries, folder=None):
    """A layer as tar. An entry is (name, content) for a file, (name, None) for a directory, (name, TYPE, link) or a TarInfo."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        if folder:
            for name in sorted(os.listdir(folder)):
                tar.add(Path(folder) / name, arcname=name)
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                tar.addfile(entry)
                continue
            info = tarfile.TarInfo(entry[0])
            info.mode = 0o755
            if len(entry) == 3:
                info.type, info.linkname = entry[1], entry[2]
                tar.addfile(info)
            elif entry[1] is None:
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            else:
                info.size = len(entry[1])
                tar.addfile(info, io.BytesIO(entry[1]))
    return made.getvalue()


class Image:
    """Its documents, from layers (the lowest first) and what the config says."""

    def __init__(self, layers, architecture="amd64", compress=False, **config):
        self.plain = layers
        self.config = json.dumps({"architecture": architecture, "os": "linux", "created": "2026-01-02T03:04:05Z", "config": config,
                                  "rootfs": {"type": "layers", "diff_ids": [sha256(one) for one in layers]}}).encode()
        self.blobs = [gzip.compress(one, mtime=0) if compress else one for one in layers]
        kind = "tar+gzip" if compress else "tar"
        part = lambda media_type, data: {"mediaType": media_type, "digest": sha256(data), "size": len(data)}
        self.manifest = json.dumps({
            "schemaVersion": 2, "mediaType": f"{OCI}.manifest.v1+json", "config": part(f"{OCI}.config.v1+json", self.config),
            "layers": [part(f"{OCI}.layer.v1.{kind}", one) for one in self.blobs]}).encode()
        self.digest = sha256(self.config)

    def entry(self, name=None):
        entry = {"mediaType": f"{OCI}.manifest.v1+json", "digest": sha256(self.manifest), "size": len(self.manifest),
                 "platform": {"os": "linux", "architecture": json.loads(self.config)["architecture"]}}
        if name:
            entry["annotations"] = {"org.opencontainers.image.ref.name": name}
        return entry


def write_layout(folder, images):
    """An OCI layout of {NAME: Image}."""
    folder = Path(folder)
    blobs = folder / "blobs/sha256"
    blobs.mkdir(parents=True)
    for image in images.values():
        for data in (image.config, image.manifest, *image.blobs):
            (blobs / sha256(data)[7:]).write_bytes(data)
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (folder / "index.json").write_text(json.dumps(
        {"schemaVersion": 2, "manifests": [image.entry(name) for name, image in images.items()]}))
    return folder


def write_docker_archive(path, image, name="app:1"):
    """As `docker save` writes it: a folder for each layer, and links for layers that are the same."""
    files, layers, known = {}, [], {}
    for index, data in enumerate(image.plain):
        layers.append(f"{index:064x}/layer.tar")
        files[layers[-1]] = known.get(sha256(data), data)
        known.setdefault(sha256(data), f"../{index:064x}/layer.tar")
    files[f"{image.digest[7:]}.json"] = image.config
    files["manifest.json"] = json.dumps([{"Config": f"{image.digest[7:]}.json", "RepoTags": [name], "Layers": layers}]).encode()
    with tarfile.open(path, "w") as tar:
        for file, data in files.items():
            info = tarfile.TarInfo(file)
            if isinstance(data, str):
                info.type, info.linkname = tarfile.SYMTYPE, data
                tar.addfile(info)
            else:
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return path
