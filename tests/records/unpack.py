"""Records are kept packed (NAME.gmr.xz): a line of a table that changes would else cost megabytes in git."""
import lzma
import pathlib


def plain(record, folder):
    """The record itself, unpacked into a folder if it is packed."""
    record = pathlib.Path(record)
    if record.suffix != ".xz":
        return record
    target = pathlib.Path(folder) / record.stem
    target.write_bytes(lzma.decompress(record.read_bytes()))
    return target


def name(record):
    """NAME of NAME.gmr or NAME.gmr.xz."""
    return record.name.removesuffix(".xz").removesuffix(".gmr")


def records(folder, pattern="*"):
    return sorted([*folder.glob(f"{pattern}.gmr"), *folder.glob(f"{pattern}.gmr.xz")])
