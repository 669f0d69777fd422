"""Finds the functions that a C++ file declares and defines outside of functions.

This is no compiler. It relies on clang-format: the { of a body follows a space, the ( of a name does not.
"""

import re
from dataclasses import dataclass

# Each as a whole, so that a // in a string begins no comment. A ' after a digit groups digits.
HIDDEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|(?<![0-9a-fA-F])\'(?:[^\'\\\n]|\\.)+\'', re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
MARKS = re.compile(r"[{}();]|\b(?:public|private|protected)\s*:(?!:)")
# What stands before a ( and is no name of a function.
WORDS = {"alignas", "auto", "bool", "decltype", "defined", "explicit", "int", "noexcept", "requires", "void", "__attribute__"}
MACRO = re.compile(r"(?!TEST_|TYPED_TEST)[A-Z][A-Z0-9]*_[A-Z0-9_]+")  # an attribute, for example
OPERATOR = re.compile(r'\boperator\s*(?:\(\)|\[\]|""\s*\w+|[^\s\w(]+|[\w:&* ]+)\s*\(')


@dataclass(frozen=True)
class Function:
    name: str  # "" if nobody calls it by its name: a constructor, an operator, a test
    owner: str  # its class, or "" for a function of a namespace
    label: str  # for people
    begin: int  # offsets in the text: of the first character, the name, and the last character
    at: int
    end: int
    body: bool  # it is defined here
    head: str  # what stands before the body


@dataclass
class Scope:
    kind: str  # namespace, class, function, or inner: all that is none of these
    name: str  # of a class
    begin: int  # where its head begins
    parentheses: int = 0  # that were open around it


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def without_literals(text):
    """Returns the text with spaces for comments and literals. All else stays where it is."""
    return HIDDEN.sub(blank, text)


def without_template_arguments(head):
    if "<" not in head:
        return head
    head = re.sub(r"->|<=>|<<=?|<=|>=|operator\s*[<>]=?", blank, head)
    while (shorter := re.sub(r"<[^<>;{}]*>", blank, head)) != head:
        head = shorter
    return head


def without_attributes(head):
    """Blanks attributes in brackets, macros, and alignas, each with its arguments."""
    head = re.sub(r"\[\[[^\]]*\]\]", blank, head)
    arguments = r"\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
    return re.sub(rf"\b(?:alignas{arguments}|__attribute__{arguments}|{MACRO.pattern}(?:{arguments})?)", blank, head)


def name_in(head):
    """Returns offset and qualified name of the function whose body or ; follows this text, or None."""
    found = OPERATOR.search(head)
    if found:
        return found.start(), "operator"
    head = without_template_arguments(head)
    depth = 0
    for match in re.finditer(r"((?:\w+::)*~?\w+)\(|[(){]", head):
        if match.group() == "{" and depth == 0:
            return None  # a member with its first value
        if match.group() == ")":
            depth -= 1
        elif match.group() != "{":
            name = match.group(1)
            if depth == 0 and name and name not in WORDS and not MACRO.fullmatch(name):
                return match.start(), name
            depth += 1
    return None


def opened_by(head):
    """Returns kind and name of the scope that a { opens after this text."""
    text = re.sub(r"^template\s+", "", without_attributes(without_template_arguments(head)).strip())
    if re.match(r"(inline\s+)?namespace\b", text) or text == "extern":  # "C" is blank
        return "namespace", ""
    declared = re.match(r"(?:class|struct|union)\b\s*([\w:]*)", text)
    if declared and "(" not in text and "=" not in text:
        return "class", declared.group(1).split("::")[-1]
    named = name_in(head)
    is_value = named is None or re.search(r"(?<![=!<>])=(?!=)", without_template_arguments(head)[:named[0]])
    if is_value or text.startswith("enum") or text.endswith("="):
        return "inner", ""
    return "function", ""


def is_declaration(head):
    text = without_template_arguments(head).strip()
    if "(" not in text or re.match(r"(using|typedef|friend|static_assert|extern\s+template)\b", text):
        return False
    before = re.sub(r"operator\s*\S+", "", text[:text.index("(")])
    return "=" not in before and not re.search(r"=\s*(0|default|delete)$", text)


def function_of(code, begin, end, owner, body):
    """Returns the function whose head begins at `begin`, or None if that is none after all."""
    begin += len(code[begin:end]) - len(code[begin:end].lstrip())
    head = code[begin:end]
    named = name_in(head)
    if not named:
        return None
    offset, qualified = named
    parts = qualified.split("::")
    owner = parts[-2] if len(parts) > 1 else owner
    name = label = parts[-1]
    if re.fullmatch(r"(TYPED_)?TEST(_[FP])?", name):
        name, label = "", ".".join(re.findall(r"\w+", head[offset:])[1:3])
    elif name == "operator" or name.lstrip("~") == owner or offset == 0:
        name = ""
    at = begin + offset + len(qualified) - len(parts[-1])
    label = f"{owner}::{label}" if owner else label
    return begin, at, name, owner, label


def functions_of(code):
    """Returns the functions in the order of their ends, or None if a brace has no partner. See without_literals."""
    code = DIRECTIVE.sub(blank, code)
    functions = []
    scopes = []
    parentheses = 0
    head = 0  # where the current statement begins

    def add(begin, head_end, end, body):
        owner = next((scope.name for scope in reversed(scopes) if scope.kind == "class"), "")
        found = function_of(code, begin, head_end, owner, body)
        if found:
            first, at, name, owner, label = found
            functions.append(Function(name, owner, label, first, at, end, body, code[first:head_end]))

    for match in MARKS.finditer(code):
        mark, at = match.group(), match.start()
        outside = not parentheses and (not scopes or scopes[-1].kind in ("namespace", "class"))
        if mark == "(":
            parentheses += 1
        elif mark == ")":
            parentheses -= 1
        elif mark == "{":
            if not outside or (re.match(r"[\w>]", code[at - 1:at]) and name_in(code[head:at])):
                scopes.append(Scope("inner", "", head, parentheses))  # the latter: of a constructor's list
                parentheses = 0
            else:
                kind, name = opened_by(code[head:at])
                scopes.append(Scope(kind, name, head))
                body = at
                if kind in ("namespace", "class"):
                    head = at + 1
        elif mark == "}":
            if not scopes:
                return None
            scope = scopes.pop()
            parentheses = scope.parentheses
            if scope.kind == "function":
                add(scope.begin, body, at, True)
            if scope.kind != "inner":
                head = at + 1
        elif outside:
            if mark == ";" and is_declaration(code[head:at]):
                add(head, at, at, False)
            head = match.end()
    return None if scopes else functions
