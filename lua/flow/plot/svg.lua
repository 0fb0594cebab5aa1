-- svg.lua: a drawing that becomes an SVG 1.1 file: shapes and texts with plain attributes, no scripts, no references to anything
-- outside, every text escaped. Lengths are pixels, y grows downwards.
--
--   local drawing = svg.new(640, 400)
--   drawing:add("line", { x1 = 0, y1 = 0, x2 = 10, y2 = 10, stroke = "#888888" })
--   drawing:text(20, 30, "loss", { size = 13, anchor = "middle" })
--   drawing:to_string()
--
-- A drawing is kept twice: parts, the lines of the SVG file, and shapes, the same for raster.lua, which draws them as pixels and does not
-- read SVG. Drawing:add, text, polyline, cross and picture write both. Attributes are written in the order of their names, so equal
-- drawings give equal files. In attributes _ stands for - (stroke_width).

local svg = {}
local Drawing = {}
Drawing.__index = Drawing

svg.FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"

local ENTITIES = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }

-- Text for XML 1.0: entities escaped; characters that XML cannot hold, and bytes that are not UTF-8, become U+FFFD.
function svg.escape(text)
  text = text:gsub("[%z\1-\8\11\12\14-\31]", "\239\191\189"):gsub("[&<>\"']", ENTITIES)
  if not text:find("[\128-\255]") then return text end
  local parts, at = {}, 1
  while at <= #text do
    local plain = text:match("^[%z\1-\127]+", at)
    local whole = plain or text:match("^[\194-\223][\128-\191]", at) or text:match("^\224[\160-\191][\128-\191]", at)
      or text:match("^[\225-\236\238\239][\128-\191][\128-\191]", at) or text:match("^\237[\128-\159][\128-\191]", at)
      or text:match("^\240[\144-\191][\128-\191][\128-\191]", at) or text:match("^[\241-\243][\128-\191][\128-\191][\128-\191]", at)
      or text:match("^\244[\128-\143][\128-\191][\128-\191]", at)
    if whole == "\239\191\190" or whole == "\239\191\191" then whole, at = nil, at + 2 end      -- U+FFFE, U+FFFF
    parts[#parts + 1] = whole or "\239\191\189"
    at = at + (whole and #whole or 1)
  end
  return table.concat(parts)
end

-- An iterator over the characters of UTF-8; bytes that continue none are left out.
function svg.characters(text) return text:gmatch("[%z\1-\127\194-\244][\128-\191]*") end

-- Width of a character in ems, by its kind (the first that fits): somewhat wider than Helvetica, as wide as DejaVu Sans.
local WIDTHS = {
  { "[iljI|.,:;'!]", 0.32 }, { "[ftr()%[%]{}/\\%- \"*`]", 0.41 }, { "[mwMWQ@%%]", 0.93 }, { "[A-Z&]", 0.70 }, { ".", 0.62 },
}
local BOLD, NARROWEST = 1.13, 0.32

-- character: one of UTF-8, as a string. All characters of two bytes count as wide as a letter, longer ones (Chinese, emoji) as an em.
local function character_width(character)
  if #character > 1 then return #character == 2 and 0.65 or 1 end
  for _, kind in ipairs(WIDTHS) do
    if character:find(kind[1]) then return kind[2] end
  end
  return 0.62
end

-- About how wide a text is: fonts differ, so this leaves some room.
function svg.text_width(text, size, weight)
  local width = 0
  for character in svg.characters(text) do width = width + character_width(character) end
  return width * size * (weight and BOLD or 1)
end

-- The text, cut in the middle with an ellipsis if it is wider than `width` pixels: beginnings and endings tell names apart. Where not even
-- two characters fit it is the ellipsis alone.
function svg.fit_text(text, size, width, weight)
  if svg.text_width(text, size, weight) <= width then return text end
  local characters = {}
  for character in svg.characters(text) do characters[#characters + 1] = character end
  local most = math.floor(width / (NARROWEST * size))      -- more characters fit in no case: a long text need not be tried at each length
  for kept = math.min(#characters - 1, most), 2, -1 do
    local left = math.ceil(kept / 2)
    local candidate = table.concat(characters, "", 1, left) .. "…" .. table.concat(characters, "", #characters - (kept - left) + 1)
    if svg.text_width(candidate, size, weight) <= width then return candidate end
  end
  return "…"
end

-- Numbers with at most two digits after the point, as short as they are.
local function number(value)
  return (("%.2f"):format(value):gsub("%.?0+$", ""):gsub("^%-0$", "0"))
end
svg.number = number

local LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

-- RFC 4648, without line ends.
function svg.base64(bytes)
  local parts = {}
  for at = 1, #bytes, 3 do
    local a, b, c = bytes:byte(at, at + 2)
    local value = a * 65536 + (b or 0) * 256 + (c or 0)
    for i = 1, 4 do
      local digit = math.floor(value / 64 ^ (4 - i)) % 64 + 1
      parts[#parts + 1] = (i == 3 and not b or i == 4 and not c) and "=" or LETTERS:sub(digit, digit)
    end
  end
  return table.concat(parts)
end

-- Numbers of 4 bytes, the least significant first.
local function words(...)
  local parts = {}
  for i, value in ipairs { ... } do
    parts[i] = string.char(value % 256, math.floor(value / 256) % 256, math.floor(value / 65536) % 256, math.floor(value / 16777216) % 256)
  end
  return table.concat(parts)
end

-- Bytes {height, width, 3} as a BMP file of 24 bits: rows from below, blue first, each filled up to 4 bytes (Microsoft: BITMAPINFOHEADER).
local function bitmap(pixels)
  local height, width = pixels.shape[1], pixels.shape[2]
  local rows, filler = {}, ("\0"):rep(-3 * width % 4)
  local bytes = (3 * width + #filler) * height
  for i, row in ipairs(pixels:totable()) do
    local parts = {}
    for x, pixel in ipairs(row) do parts[x] = string.char(pixel[3], pixel[2], pixel[1]) end
    rows[height - i + 1] = table.concat(parts) .. filler
  end
  return "BM" .. words(54 + bytes, 0, 54, 40, width, height, 1 + 24 * 65536, 0, bytes, 2835, 2835, 0, 0) .. table.concat(rows)
end

-- ' a="1" b="text"' of a table of numbers and texts.
local function attributes(list)
  local names, parts = {}, {}
  for name in pairs(list) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    local value = list[name]
    parts[i] = (' %s="%s"'):format(name:gsub("_", "-"), type(value) == "number" and number(value) or svg.escape(value))
  end
  return table.concat(parts)
end

-- width, height: in pixels. parts: lines of SVG; shapes: the same as { element =, list = attributes }, for raster.lua; depth: of the
-- indentation.
function svg.new(width, height)
  return setmetatable({ width = width, height = height, parts = {}, shapes = {}, depth = 1 }, Drawing)
end

function Drawing:line_(text)
  self.parts[#self.parts + 1] = ("  "):rep(self.depth) .. text
end

function Drawing:keep_(element, list) self.shapes[#self.shapes + 1] = { element = element, list = list } end

-- One element. tooltip: a text that viewers show when the mouse rests on it.
function Drawing:add(element, list, tooltip)
  self:keep_(element, list)
  self:write_(element, list, tooltip)
end

function Drawing:write_(element, list, tooltip)
  if not tooltip then return self:line_(("<%s%s/>"):format(element, attributes(list))) end
  self:line_(("<%s%s><title>%s</title></%s>"):format(element, attributes(list), svg.escape(tooltip), element))
end

function Drawing:open(element, list)
  self:line_(("<%s%s>"):format(element, attributes(list or {})))
  self.depth = self.depth + 1
end

function Drawing:close(element)
  self.depth = self.depth - 1
  self:line_("</" .. element .. ">")
end

-- A text whose baseline begins at x, y. options: size, anchor (start, middle, end), fill, weight, width (cut to it, the whole text
-- becomes the tooltip), rotate (degrees around x, y), family.
function Drawing:text(x, y, text, options)
  local size = options.size or 12
  local shown = options.width and svg.fit_text(text, size, options.width, options.weight) or text
  local list = { x = x, y = y, font_size = size, text_anchor = options.anchor, fill = options.fill, font_weight = options.weight,
                 font_family = options.family,
                 transform = options.rotate and ("rotate(%s %s %s)"):format(options.rotate, number(x), number(y)) }
  self:keep_("text", { x = x, y = y, text = shown, size = size, anchor = options.anchor, fill = options.fill, weight = options.weight,
                       rotate = options.rotate })
  local title = shown ~= text and ("<title>%s</title>"):format(svg.escape(text)) or ""
  self:line_(("<text%s>%s%s</text>"):format(attributes(list), title, svg.escape(shown)))
end

-- A path through points { x1, y1, x2, y2, ... }.
function Drawing:polyline(points, list)
  local parts = {}
  for i = 1, #points, 2 do parts[#parts + 1] = number(points[i]) .. "," .. number(points[i + 1]) end
  self:keep_("polyline", { corners = points, stroke = list.stroke, stroke_width = list.stroke_width })
  list.points, list.fill = table.concat(parts, " "), list.fill or "none"
  self:write_("polyline", list)
end

-- A cross in the square of that size whose upper left corner is x, y.
function Drawing:cross(x, y, size, list, tooltip)
  self:keep_("cross", { x = x, y = y, size = size, stroke = list.stroke, stroke_width = list.stroke_width })
  list.d = ("M%s,%sl%d,%dm0,-%dl-%d,%d"):format(number(x), number(y), size, size, size, size, size)
  list.fill = "none"
  self:write_("path", list, tooltip)
end

-- A picture, bytes {height, width, 3}, as a part of the file itself.
function Drawing:picture(x, y, width, height, pixels)
  self:keep_("picture", { x = x, y = y, width = width, height = height, pixels = pixels })
  self:write_("image", { x = x, y = y, width = width, height = height, style = "image-rendering: pixelated",
                         href = "data:image/bmp;base64," .. svg.base64(bitmap(pixels)) })
end

-- title: what the picture shows, for readers that do not see it.
function Drawing:to_string(title)
  local head = ('<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img" font-family="%s">')
    :format(number(self.width), number(self.height), number(self.width), number(self.height), svg.escape(svg.FONT))
  return table.concat { '<?xml version="1.0" encoding="UTF-8"?>\n', head, "\n  <title>", svg.escape(title or ""), "</title>\n",
                        table.concat(self.parts, "\n"), "\n</svg>\n" }
end

return svg
