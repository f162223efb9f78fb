"""What all parts of the policy share: the model base and the reading of its scalars."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Model(BaseModel):
    """An immutable part of a policy; camelCase outside, snake_case inside, nothing unknown."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        defer_build=False,
        extra="forbid",
        frozen=True,
        serialize_by_alias=True,
        use_attribute_docstrings=False,
        validate_by_alias=True,
        validate_by_name=False,
    )
