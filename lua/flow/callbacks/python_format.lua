-- python_format.lua: numbers and templates as Python writes them, because file names and logs of Keras do: repr of a float, and str.format
-- with names: "{epoch:02d}-{val_loss:.2f}" (Python: Format String Syntax, Format Specification Mini-Language).
--
-- A spec, which read_spec makes of the text after the colon, has: fill (a character), align (< > = ^), sign ("+", "-" or " "), alternate
-- (#), zero (0 before the width), width, group ("," or "_"), precision and type; nil: not given, type "" : none. Widths count UTF-8
-- characters. Whole numbers are those that the caller says; every other number is a float, as in Keras, whose logs are floats.

local errors = require "flow.errors"

local raise = errors.raise
local python_format = {}

---- floats ------------------------------------------------------------------------------------------------------------------------

-- The text of a value that is not finite.
local function special(value)
  if value ~= value then return "nan" end
  return value < 0 and "-inf" or "inf"
end

local function is_finite(value)
  return value == value and value ~= math.huge and value ~= -math.huge
end

-- What to format instead of a value that is exactly between two texts: C and Python take the even one, LuaJIT the larger one.
-- kind: f or e; precision: digits after the point.
local function to_even(value, precision, kind)
  if not is_finite(value) or precision > 40 then return value end
  local kept, rest, exponent = ("%.99" .. kind):format(value):match("^(%-?%d+%.?" .. ("%d"):rep(precision) .. ")%.?(%d*)(.*)$")
  if not rest:find("^50*$") or not kept:find("[02468]%.?$") then return value end
  return tonumber(kept .. exponent)
end

-- Digits and exponent (of the first digit) as Python writes a float without a type: an exponent from 10^`large` on and below 1e-4,
-- else a point with at least one digit after it. alternate: with all digits, and a point before every exponent.
local function write_digits(sign, digits, exponent, large, alternate)
  if not alternate then digits = digits:gsub("0+$", "") end
  if digits == "" then digits = "0" end
  if exponent < -4 or exponent >= large then
    local mantissa = (alternate or #digits > 1) and digits:sub(1, 1) .. "." .. digits:sub(2) or digits
    return ("%s%se%s%02d"):format(sign, mantissa, exponent < 0 and "-" or "+", math.abs(exponent))
  end
  if exponent < 0 then return sign .. "0." .. ("0"):rep(-exponent - 1) .. digits end
  if #digits <= exponent + 1 then return sign .. digits .. ("0"):rep(exponent + 1 - #digits) .. ".0" end
  return sign .. digits:sub(1, exponent + 1) .. "." .. digits:sub(exponent + 2)
end

-- The sign ("" or "-"), `precision` significant digits as a text, and the exponent of the first of them, of a finite value.
local function digits_of(value, precision)
  value = to_even(value, precision - 1, "e")
  local sign, first, rest, exponent = ("%." .. precision - 1 .. "e"):format(value):match("^(%-?)(%d)%.?(%d*)e([+-]%d+)$")
  return sign, first .. rest, tonumber(exponent)
end

-- repr(float): the shortest digits that read back as the same number: 0.1, 1.0, 1e-05, 1e+16, nan.
function python_format.repr(value)
  if not is_finite(value) then return special(value) end
  for precision = 1, 17 do
    local sign, digits, exponent = digits_of(value, precision)
    local text = write_digits(sign, digits, exponent, 16)
    if precision == 17 or tonumber(text) == value then return text end
  end
end

---- format specifications --------------------------------------------------------------------------------------------------------------

-- UTF-8 characters of a text, which is what widths count.
local function length(text)
  return #text:gsub("[\128-\191]", "")
end

-- The text filled up to the width. default: the alignment where the spec has none.
local function pad(text, spec, default)
  local missing = (spec.width or 0) - length(text)
  if missing <= 0 then return text end
  local fill, align = spec.fill or " ", spec.align or default
  if align == "<" then return text .. fill:rep(missing) end
  if align == "^" then return fill:rep(math.floor(missing / 2)) .. text .. fill:rep(math.ceil(missing / 2)) end
  return fill:rep(missing) .. text
end

-- Digits with a separator before every `size` of them, counted from the end.
local function group(digits, separator, size)
  local text = digits:reverse():gsub(("%w"):rep(size), "%0" .. separator):reverse()
  return text:sub(1, 1) == separator and text:sub(2) or text
end

-- The sign, the prefix of a base (nil: none), the digits in front of the point and the rest, put together: grouped, padded between sign and
-- digits if asked for.
local function assemble(sign, whole, rest, spec, size, prefix)
  local separator = whole:find("^%x") and spec.group or nil
  if sign == "" and spec.sign ~= "-" then sign = spec.sign or "" end
  sign = sign .. (prefix or "")
  if spec.align == "=" then
    local room = (spec.width or 0) - #sign - #rest
    local fill = spec.fill or " "
    if separator and fill == "0" then      -- the zeros are grouped, too
      while #group("0" .. whole, separator, size) <= room do whole = "0" .. whole end
      if #group(whole, separator, size) < room then whole = "0" .. whole end
    end
    if separator then whole = group(whole, separator, size) end
    return sign .. fill:rep(room - #whole) .. whole .. rest
  end
  if separator then whole = group(whole, separator, size) end
  return pad(sign .. whole .. rest, spec, ">")
end

local INTEGER_BASES = { b = 2, o = 8, x = 16, X = 16 }
local PREFIXES = { b = "0b", o = "0o", x = "0x", X = "0X" }

-- The digits of a whole number from 0 in a base up to 16. Exact up to 2^53.
local function in_base(value, base)
  local digits = ""
  repeat
    local digit = value % base
    digits = ("0123456789abcdef"):sub(digit + 1, digit + 1) .. digits
    value = (value - digit) / base
  until value == 0
  return digits
end

-- Raises for a grouping that a type does not have: n groups by itself, and bases other than 10 have no commas.
local function check_group(spec, shown)
  if spec.group and (spec.type == "n" or spec.group == "," and INTEGER_BASES[spec.type]) then
    raise("%s: the type %q does not go with the grouping %q", shown, spec.type, spec.group)
  end
end

-- A float by a spec; raises for a type that floats do not have. shown: the template, as messages name it, also below. Without type or
-- precision it is repr; with a precision alone as "g", but with a point (Python's documentation of the type None).
local function format_float(value, spec, shown)
  check_group(spec, shown)
  local kind = spec.type
  local text, percent = nil, ""
  if kind == "%" then
    value, kind, percent = value * 100, "f", "%"
  end
  if kind ~= "" and not ("eEfFgGn"):find(kind, 1, true) then
    raise("%s: a float has no format of type %q; e, f, g and %% are for floats", shown, kind)
  elseif not is_finite(value) then
    text = special(value)
  elseif kind == "" and not spec.precision then
    text = python_format.repr(value)
    if spec.alternate then text = text:gsub("^(%-?%d+)e", "%1.e") end
  elseif kind == "" then
    local precision = math.max(spec.precision, 1)
    local minus, digits, exponent = digits_of(value, precision)
    text = write_digits(minus, digits, exponent, precision == 1 and 0 or precision - 1, spec.alternate)
  else
    local precision, form = spec.precision or 6, kind == "n" and "g" or kind
    if ("gGn"):find(kind, 1, true) then value = to_even(value, math.max(precision, 1) - 1, "e")
    else value = to_even(value, precision, kind:lower()) end
    text = ("%" .. (spec.alternate and "#" or "") .. "." .. precision .. form):format(value)
  end
  if ("EFG"):find(kind, 1, true) and kind ~= "" then text = text:upper() end
  local sign
  sign, text = text:match("^(%-?)(.*)$")
  local whole, rest = text:match("^(%d+)(.*)$")
  return assemble(sign, whole or text, (rest or "") .. percent, spec, 3)
end

-- A whole number by a spec; types of floats format it as a float.
local function format_integer(value, spec, shown)
  local kind = spec.type
  if kind ~= "" and ("eEfFgG%"):find(kind, 1, true) then return format_float(value, spec, shown) end
  check_group(spec, shown)
  if spec.precision then raise("%s: a whole number takes no precision", shown) end
  local base, sign, whole = INTEGER_BASES[kind], value < 0 and "-" or "", nil
  if base then
    whole = in_base(math.abs(value), base)
    if kind == "X" then whole = whole:upper() end
  elseif kind == "" or kind == "d" or kind == "n" then
    whole = ("%.0f"):format(math.abs(value))
  else
    raise("%s: a whole number has no format of type %q; d is for whole numbers", shown, kind)
  end
  return assemble(sign, whole, "", spec, base and 4 or 3, spec.alternate and PREFIXES[kind] or nil)
end

-- A text by a spec; the precision is the most characters that are taken of it. Changes the spec.
local function format_text(value, spec, shown)
  if spec.type ~= "" and spec.type ~= "s" then raise("%s: a text has no format of type %q", shown, spec.type) end
  if spec.sign or spec.align == "=" and not spec.by_zero or spec.group or spec.alternate then
    raise("%s: a text takes neither sign, grouping nor #", shown)
  end
  if spec.precision then
    local kept, count = {}, 0
    for character in value:gmatch("[%z\1-\127\194-\244][\128-\191]*") do
      if count == spec.precision then break end
      count = count + 1
      kept[count] = character
    end
    value = table.concat(kept)
  end
  if spec.align == "=" then spec.align = "<" end
  return pad(value, spec, "<")
end

-- The spec of a text "[[fill]align][sign][#][0][width][grouping][.precision][type]"; raises for any other text, and for widths and
-- precisions above 99, which string.format does not take.
local function read_spec(text, shown)
  local spec, rest = {}, text
  local fill, align, after = rest:match("^([%z\1-\127\194-\244][\128-\191]*)([<>=^])(.*)$")
  if fill then
    spec.fill, spec.align, rest = fill, align, after
  elseif rest:find("^[<>=^]") then
    spec.align, rest = rest:sub(1, 1), rest:sub(2)
  end
  local sign, alternate, zero, width, grouping, point, kind = rest:match("^([+ -]?)(#?)(0?)(%d*)([,_]?)(%.?%d*)([%a%%]?)$")
  if not sign or point == "." then raise("%s: the format %q is not one of Python's", shown, text) end
  spec.sign = sign ~= "" and sign or nil      -- "-" is what happens anyway, but a text does not take it
  spec.alternate, spec.zero, spec.width = alternate == "#", zero == "0", tonumber(width)
  spec.group, spec.precision, spec.type = grouping ~= "" and grouping or nil, tonumber(point:sub(2)), kind
  if (spec.width or 0) > 99 or (spec.precision or 0) > 99 then raise("%s: width and precision are at most 99", shown) end
  spec.by_zero = spec.zero and not spec.align      -- Python pads a text with the zeros after it
  if spec.zero then spec.fill, spec.align = spec.fill or "0", spec.align or "=" end
  return spec
end

---- templates ---------------------------------------------------------------------------------------------------------------------------

-- The names of several tables in one text, sorted.
local function sorted_names(...)
  local names = {}
  for _, list in ipairs { ... } do
    for name in pairs(list) do names[#names + 1] = name end
  end
  table.sort(names)
  return table.concat(names, ", ")
end

-- str.format(template, **integers, **values): whole numbers by name, and floats or texts by name. {{ and }} are braces. Raises for a
-- name that is in neither and for what is not a format of its value; what: names the caller in messages.
function python_format.format(what, template, integers, values)
  local shown = ("%s: %q"):format(what, template)
  local function field(content)
    local name, spec = content:match("^([%a_][%w_]*)$"), ""
    if not name then name, spec = content:match("^([%a_][%w_]*):(.*)$") end
    if not name then
      raise("%s: {%s} is not a name, or a name and a format as in {epoch:02d}", shown, content)
    end
    local read = read_spec(spec, shown)
    if integers[name] ~= nil then return format_integer(integers[name], read, shown) end
    local value = values[name]
    if type(value) == "number" and read.type and read.type ~= "" and ("bcdoxX"):find(read.type, 1, true) then
      raise("%s: {%s}: a float has no format of type %q; whole numbers here are %s", shown, content, read.type, sorted_names(integers))
    end
    if type(value) == "number" then return format_float(value, read, shown) end
    if type(value) == "string" then return format_text(value, read, shown) end
    raise("%s: there is no %s to put in; there are %s", shown, name, sorted_names(integers, values))
  end
  local text, at = {}, 1
  while at <= #template do
    local here = template:sub(at, at)
    local both = template:sub(at, at + 1)
    if both == "{{" or both == "}}" then
      text[#text + 1] = here
      at = at + 2
    elseif here == "{" then
      local content = template:match("^{([^{}]*)}", at) or raise("%s: a { has no } (a brace itself is written {{)", shown)
      text[#text + 1] = field(content)
      at = at + #content + 2
    elseif here == "}" then
      raise("%s: a } has no { (a brace itself is written }})", shown)
    else
      text[#text + 1] = here
      at = at + 1
    end
  end
  return table.concat(text)
end

-- Raises for a template that no values could fill: an unknown form, a format that a number of its kind does not have. integers: names of
-- whole numbers; every other name may be that of a float.
function python_format.check(what, template, integers)
  local whole = {}
  for _, name in ipairs(integers) do whole[name] = 1 end
  python_format.format(what, template, whole, setmetatable({}, { __index = function() return 0.5 end }))
end

return python_format
