"""Errors of the store, as exceptions."""

from typing import Any, Dict, List, NoReturn, Sequence, Type

from gannet._capi import ffi, lib


class Error(Exception):
    """The base of all errors of this package."""


class InvalidArgument(Error, ValueError):
    """The key is empty or too long, the value is too long, or an option does not fit the call."""


class NotFound(Error, LookupError):
    """A write that needs an item found none."""


class AlreadyExists(Error):
    """A write that needs an absent key found an item."""


class FailedPrecondition(Error):
    """The version does not match, the value is no number, or the call cannot work here."""


class LockLost(Error):
    """The lock was lost, so nothing was written."""


class SnapshotFailed(Error):
    """The server gave the snapshot up. The text says why."""


class OutOfRange(Error):
    """The number would not fit 64 bits, or the value would be too long."""


class ResourceExhausted(Error):
    """The server's memory or its index is full."""


class PermissionDenied(Error, PermissionError):
    """The server refuses this client, or its key may only read."""


class Unavailable(Error, ConnectionError):
    """The server cannot be reached. Nothing was applied, so the call may be repeated."""


class DeadlineExceeded(Error, TimeoutError):
    """The server was too slow, or another client holds the lock. A write may have been applied."""


class OutcomeUnknown(Error):
    """A write that may or may not have been applied."""


class Unimplemented(Error):
    """The device or the server cannot do this."""


class InternalError(Error):
    """A bug."""


_CLASSES: Dict[int, Type[Error]] = {
    lib.GANNET_UNKNOWN: OutcomeUnknown,
    lib.GANNET_INVALID_ARGUMENT: InvalidArgument,
    lib.GANNET_DEADLINE_EXCEEDED: DeadlineExceeded,
    lib.GANNET_NOT_FOUND: NotFound,
    lib.GANNET_ALREADY_EXISTS: AlreadyExists,
    lib.GANNET_PERMISSION_DENIED: PermissionDenied,
    lib.GANNET_RESOURCE_EXHAUSTED: ResourceExhausted,
    lib.GANNET_FAILED_PRECONDITION: FailedPrecondition,
    lib.GANNET_ABORTED: LockLost,
    lib.GANNET_OUT_OF_RANGE: OutOfRange,
    lib.GANNET_UNIMPLEMENTED: Unimplemented,
    lib.GANNET_INTERNAL: InternalError,
    lib.GANNET_UNAVAILABLE: Unavailable,
}


def name_of(status: int) -> str:
    return ffi.string(lib.gannet_strerror(status)).decode()


def error_of(status: int, text: str = "") -> Error:
    """Returns the exception for a status."""
    return _CLASSES.get(status, Error)(text or name_of(status))


def raise_last(status: int) -> NoReturn:
    """Raises what the last call of this thread reported."""
    # The library keeps no text for this one, because it is an answer of most calls.
    if status == lib.GANNET_NOT_FOUND:
        raise error_of(status)
    raise error_of(status, _last_text())


def answers_of_keys(status: int, return_errors: bool, statuses: Sequence[int], answers: Sequence[Any], miss: Any
                    ) -> List[Any]:
    """Returns the answer of each key of a call for many, which ended with `status`. Returns `miss` for a
    key that was not found, and an exception for one with an error. Raises `status` without
    `return_errors`, or if the call was refused as a whole."""
    if status and not (return_errors and any(statuses)):
        raise_last(status)
    text = _last_text() if status else ""  # that of the first error which is no miss
    each: List[Any] = []
    for of_key, answer in zip(statuses, answers):
        if of_key == lib.GANNET_OK:
            each.append(answer)
        elif of_key == lib.GANNET_NOT_FOUND:
            each.append(miss)
        else:
            each.append(error_of(of_key, text))
            text = ""
    return each


def _last_text() -> str:
    return ffi.string(lib.gannet_last_error()).decode(errors="replace")
