"""The errors that a user sees: one sentence, no traceback."""


class GpufairError(Exception):
    """A failure whose message is a complete sentence for the user.

    The command line prints it to stderr and exits with `exit_code`.
    """

    exit_code = 1

    def __init__(self, message: str, *, exit_code: int | None = None) -> None:
        super().__init__(message)
        if exit_code is not None:
            self.exit_code = exit_code
