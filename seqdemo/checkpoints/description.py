"""config.json: the description of a checkpoint, checked key by key. No value in it is ever used as a path."""

from __future__ import annotations

import re
from typing import Any

from seqdemo import config as limits
from seqdemo.checkpoints.folder import CONFIG, FORMATS, bare_name, check_format, parse_json
from seqdemo.config import ModelConfig, from_json
from seqdemo.errors import InputError

ENCODER_OF_TASK = {"translate": "text", "transliterate": "text", "caption": "image", "complete": "none"}
KINDS = ("subwords", "characters", "words")
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
LANGUAGE = re.compile(r"[A-Za-z0-9-]{1,20}")
MAX_LANGUAGES = 200


def _text(value: Any, key: str) -> None:
    if not isinstance(value, str) or len(value) > 10_000:
        raise InputError(f"{CONFIG}: {key} must be a text of at most 10,000 characters.")


def _name(value: Any, key: str) -> None:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise InputError(f"{CONFIG}: {key} must be lower-case letters, digits and dashes, at most 64, not {str(value)[:80]!r}.")


def _task(value: Any, key: str) -> None:
    if value not in tuple(ENCODER_OF_TASK):
        raise InputError(f"{CONFIG}: {key} {str(value)[:80]!r} is not known; choose one of {', '.join(ENCODER_OF_TASK)}.")


def _architecture(value: Any, key: str) -> None:
    if value not in ("Seq2Seq", "LanguageModel", "Transformer", "Single"):
        raise InputError(
            f"{CONFIG}: {key} {str(value)[:80]!r} is not known; it is Seq2Seq, LanguageModel, Transformer or Single."
        )


def _model(value: Any, key: str) -> None:
    try:
        from_json(ModelConfig, value)
    except InputError as error:
        raise InputError(f"{CONFIG}: {key}: {error}") from None


def _language(value: Any, key: str) -> None:
    if not isinstance(value, str) or not LANGUAGE.fullmatch(value):
        raise InputError(f"{CONFIG}: {key} must be a language code such as de or pt-BR, not {str(value)[:80]!r}.")


def _languages(value: Any, key: str) -> None:
    if not isinstance(value, list) or len(value) > MAX_LANGUAGES or len(set(map(str, value))) != len(value):
        raise InputError(f"{CONFIG}: {key} must be a list of at most {MAX_LANGUAGES} different language codes.")
    for code in value:
        _language(code, key)


def _tokenizers(value: Any, key: str) -> None:
    if not isinstance(value, dict) or not set(value) <= {"source", "target"}:
        raise InputError(f"{CONFIG}: {key} must be an object with source and target.")
    for side, spec in value.items():
        if not isinstance(spec, dict) or set(spec) != {"kind", "file"}:
            raise InputError(f"{CONFIG}: {key}.{side} must have exactly kind and file.")
        if spec["kind"] not in KINDS:
            raise InputError(
                f"{CONFIG}: tokenizer kind {str(spec['kind'])[:80]!r} is not known; choose one of {', '.join(KINDS)}."
            )
        bare_name(spec["file"], f"{CONFIG}: {key}.{side}.file")


def _limits(value: Any, key: str) -> None:
    if not isinstance(value, dict) or len(value) > 50:
        raise InputError(f"{CONFIG}: {key} must be an object.")
    for name, limit in value.items():
        if type(limit) is not int or not 0 <= limit <= limits.MAX_STEPS:
            raise InputError(f"{CONFIG}: {key}.{name[:80]} must be a whole number from 0 to {limits.MAX_STEPS:,}.")


def _shared(value: Any, key: str) -> None:
    if not isinstance(value, dict) or not set(value) <= {"cnn"}:
        raise InputError(f"{CONFIG}: {key} may only name cnn.")
    for part, entry in value.items():
        if not isinstance(entry, dict) or set(entry) != {"file", "sha256"}:
            raise InputError(f"{CONFIG}: {key}.{part} must have exactly file and sha256.")
        if not bare_name(entry["file"], f"{CONFIG}: {key}.{part}.file").endswith(".safetensors"):
            raise InputError(f"{CONFIG}: {key}.{part}.file must be a .safetensors file.")
        if not isinstance(entry["sha256"], str) or not re.fullmatch("[0-9a-f]{64}", entry["sha256"]):
            raise InputError(f"{CONFIG}: {key}.{part}.sha256 must be 64 hexadecimal digits.")


def _trained_on(value: Any, key: str) -> None:
    needed = {"data", "fingerprint", "verified", "changes"}
    if not isinstance(value, dict) or not needed <= set(value) <= needed | {"recipe", "commits"}:
        raise InputError(f"{CONFIG}: {key} must have data, fingerprint, verified and changes, and may have recipe and commits.")
    if not isinstance(value["verified"], bool):
        raise InputError(f"{CONFIG}: {key}.verified must be true or false.")
    if not isinstance(value["changes"], list) or len(value["changes"]) > 100:
        raise InputError(f"{CONFIG}: {key}.changes must be a list of at most 100 texts.")
    if not isinstance(value.get("recipe", {}), dict) or len(value.get("recipe", {})) > 100:
        raise InputError(f"{CONFIG}: {key}.recipe must be an object of at most 100 values.")
    if not isinstance(value.get("commits", []), list) or len(value.get("commits", [])) > 100:
        raise InputError(f"{CONFIG}: {key}.commits must be a list of at most 100 texts.")
    for text in (value["data"], value["fingerprint"], *value["changes"], *value.get("commits", ())):
        _text(text, key)


REQUIRED = {"name": _name, "task": _task, "architecture": _architecture, "model": _model, "tokenizers": _tokenizers}
OPTIONAL = {
    "languages": _languages,
    "source_language": _language,
    "target_language": _language,
    "licence": _text,
    "limits": _limits,
    "shared": _shared,
    "about": _text,
    "trained_on": _trained_on,
}


def parse_config(data: bytes) -> dict[str, Any]:
    config = parse_json(data, CONFIG)
    check_config(config)
    return config  # type: ignore[no-any-return]


def check_config(config: Any) -> None:
    check_format(config, CONFIG, FORMATS)
    known = {"format": None, **REQUIRED, **OPTIONAL}
    unknown, missing = sorted(set(config) - set(known)), sorted(set(REQUIRED) - set(config))
    if unknown:
        raise InputError(f"{CONFIG} has {str(unknown)[:200]}, which is not known; the keys are {', '.join(known)}.")
    if missing:
        raise InputError(f"{CONFIG} lacks {', '.join(missing)}.")
    for key, check in {**REQUIRED, **OPTIONAL}.items():
        if key in config:
            check(config[key], key)
    _check_together(config)


def _check_together(config: dict[str, Any]) -> None:
    model, task = model_config(config), config["task"]
    if model.encoder != ENCODER_OF_TASK[task]:
        raise InputError(f"{CONFIG}: task {task} needs encoder {ENCODER_OF_TASK[task]}, not {model.encoder}.")
    if (config["architecture"] == "LanguageModel") != (task == "complete"):
        raise InputError(f"{CONFIG}: task {task} does not go with architecture {config['architecture']}.")
    if (config["architecture"] == "Transformer", config["architecture"] == "Single") != (model.is_transformer, model.is_single):
        raise InputError(f"{CONFIG}: decoder {model.decoder} does not go with architecture {config['architecture']}.")
    if bool(config.get("shared", {}).get("cnn")) != (model.encoder == "image"):
        raise InputError(f"{CONFIG}: a model that reads pictures names shared.cnn, and no other does.")
    sides = set(config["tokenizers"])
    if sides and sides != ({"source", "target"} if model.encoder == "text" else {"target"}):
        raise InputError(f"{CONFIG}: task {task} has tokenizers {sorted(sides)}, which do not fit.")


def model_config(config: dict[str, Any]) -> ModelConfig:
    return from_json(ModelConfig, config["model"])  # type: ignore[no-any-return]
