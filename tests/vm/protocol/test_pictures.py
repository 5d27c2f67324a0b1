"""Pictures reach a model as pictures, and what is none never does."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.vm.protocol.leaves import PNG, answers, asks, form, leaf, user
from tests.vm.protocol.providers import MESSAGES, REFUSES
from vmstore.core.page import Modality, Role
from vmstore.vm.protocol import PromptPage, messages
from vmstore.vm.protocol.picture import PICTURE_BYTES_MAX, picture

SHAPES = ["chat", "responses", "anthropic", "gemini"]


def image(content: bytes, **fields: Any) -> PromptPage:
    """A picture a user brought."""
    page = user("p1", content=content, modality=Modality.IMAGE, mime="image/jpeg", **fields)
    return page


def test_a_picture_is_sent_as_one() -> None:
    """An image goes out as a real image block in each shape, under the type its own bytes have."""
    data = base64.b64encode(PNG).decode()
    blocks = {
        "chat": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        "responses": {"type": "input_image", "image_url": f"data:image/png;base64,{data}"},
        "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
        "gemini": {"inlineData": {"mimeType": "image/png", "data": data}},
    }
    for shape, block in blocks.items():
        request = messages([image(PNG)], shape=shape).request
        message = request[MESSAGES[shape]][0]
        assert message["parts" if shape == "gemini" else "content"] == [block]


def test_a_picture_too_large_is_its_caption() -> None:
    """Up to a million bytes a picture is sent; one byte more and it is told by its caption."""
    whole = PNG + b"\x00" * (PICTURE_BYTES_MAX - len(PNG))
    assert picture(image(whole)) is not None
    large = image(whole + b"\x00", others=(form(2, 3, "a plan"),), width=3, height=4)
    assert picture(large) is None
    assert messages([large]).request["messages"][0]["content"] == '[IMAGE: "a plan", 3x4]'


@pytest.mark.parametrize("content", [b"", b"<html>", b"RIFFxxxxWAVE", b"data:image/png;base64,@@", None])
def test_what_is_no_picture_is_told_in_words(content: bytes | None) -> None:
    """An image that is not what it is said to be never reaches a provider as one."""
    page = image(content or b"")
    page = page if content is not None else user("p1", content=None, modality=Modality.IMAGE, mime="image/png")
    assert picture(page) is None
    assert messages([page]).request["messages"][0]["content"].startswith("[IMAGE: image/")


def test_a_data_url_is_a_picture() -> None:
    """A picture kept as the data: URL it came in is sent as its bytes."""
    page = image(b"data:image/png;base64," + base64.b64encode(PNG))
    assert picture(page) == ("image/png", PNG, "")


def test_a_picture_on_the_web_is_sent_by_its_address() -> None:
    """An image that a request named by its address goes out by it, whichever provider's part it was."""
    url = "https://example.org/a.png"
    parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "image", "source": {"type": "url", "url": url}}]
    for part in parts:
        page = user("p1", json.dumps(part), modality=Modality.IMAGE, mime="application/json")
        chat = messages([page]).request["messages"][0]["content"]
        assert chat == [{"type": "image_url", "image_url": {"url": url}}]
        claude = messages([page], shape="anthropic").request["messages"][0]["content"]
        assert claude == [{"type": "image", "source": {"type": "url", "url": url}}]
        gemini = messages([page], shape="gemini").request["contents"][0]["parts"]
        assert gemini == [{"fileData": {"fileUri": url}}]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_tools_picture_is_seen(shape: str) -> None:
    """A picture that a tool answered with reaches the model in every shape."""
    shot = answers("p3", content=PNG, modality=Modality.IMAGE, mime="image/png")
    request = messages([user("p1"), asks("p2"), shot], shape=shape).request
    assert REFUSES[shape](request) == []
    assert base64.b64encode(PNG).decode() in json.dumps(request)


def test_a_tools_picture_and_what_the_user_says_next_are_one_content() -> None:
    """For Gemini the picture a tool answered with and the user's next words do not follow each other as two."""
    shot = answers("p3", content=PNG, modality=Modality.IMAGE, mime="image/png")
    request = messages([user("p1"), asks("p2"), shot, user("p4", message=4)], shape="gemini").request
    assert REFUSES["gemini"](request) == []
    assert [sorted(part) for part in request["contents"][-1]["parts"]] == [["inlineData"], ["text"]]


def test_a_picture_the_model_made_is_told_in_words() -> None:
    """No provider takes an image as the assistant's word."""
    page = leaf("p1", content=PNG, modality=Modality.IMAGE, mime="image/png", role=Role.ASSISTANT, message=1)
    sent = messages([user("p0"), page, user("p2", message=2)]).request["messages"]
    assert sent[1] == {"role": "assistant", "content": "[IMAGE: image/png, 32 bytes]"}
