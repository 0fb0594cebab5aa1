-- raster.lua: a drawing (svg.lua) as pixels, for .png files: rectangles, lines, circles, pictures and texts in the dots of font.lua.
-- Edges are soft: a pixel takes as much colour as the shape's distance from its middle says.
--
-- A canvas is { tensor = uint8 {height, width, 3} on the host, width =, height =, bytes = a pointer to the tensor's first byte, which is
-- valid as long as the tensor is }. Functions take places and sizes in pixels; those in shapes, one for each element of svg.lua's drawings,
-- take the drawing's units and multiply by SCALE. fill() keeps everything inside of the canvas, so no shape can write beyond it.

local bit = require "bit"
local native = require "flow.ffi"
local ops = require "flow.tensor"
local font = require "flow.plot.font"
local svg = require "flow.plot.svg"

local C = native.C
local SCALE = 2      -- pixels for a unit of the drawing, so that lines and texts stay clear

local raster = {}

-- "#rrggbb" as three numbers from 0 to 255. All colours of this room have this form.
local function color_of(text)
  local red, green, blue = text:match("^#(%x%x)(%x%x)(%x%x)$")
  return tonumber(red, 16), tonumber(green, 16), tonumber(blue, 16)
end

local function new_canvas(width, height)
  -- On the host whatever flow.device says, since the bytes are set from here.
  local tensor = ops.full({ height, width, 3 }, 255, { dtype = "uint8", device = "cpu" })
  return { tensor = tensor, width = width, height = height, bytes = native.cast("uint8_t *", C.flow_tensor_data(native.pointer(tensor))) }
end

-- Mixes a colour into a pixel; share: 0 to 1. x and y have to be inside of the canvas: nothing is checked here.
local function mix(canvas, x, y, red, green, blue, share)
  local bytes, at = canvas.bytes, 3 * (y * canvas.width + x)
  bytes[at] = bytes[at] + (red - bytes[at]) * share
  bytes[at + 1] = bytes[at + 1] + (green - bytes[at + 1]) * share
  bytes[at + 2] = bytes[at + 2] + (blue - bytes[at + 2]) * share
end

-- Colours all pixels between the corners, as far as they are on the canvas, by the share that share_at(x, y) gives of a pixel's middle: 0
-- and less leave it unchanged, 1 and more replace it.
local function fill(canvas, left, top, right, bottom, color, share_at)
  local red, green, blue = color_of(color)
  for y = math.max(0, math.floor(top)), math.min(canvas.height - 1, math.ceil(bottom)) do
    for x = math.max(0, math.floor(left)), math.min(canvas.width - 1, math.ceil(right)) do
      local share = share_at(x + 0.5, y + 0.5)
      if share > 0 then mix(canvas, x, y, red, green, blue, math.min(share, 1)) end
    end
  end
end

-- A line with round ends; of no length: a disc. A pixel's share goes from 1 to 0 over one pixel around the edge.
local function draw_line(canvas, x1, y1, x2, y2, width, color)
  local half, dx, dy = width / 2, x2 - x1, y2 - y1
  local square = dx * dx + dy * dy
  fill(canvas, math.min(x1, x2) - half - 1, math.min(y1, y2) - half - 1, math.max(x1, x2) + half + 1, math.max(y1, y2) + half + 1, color,
    function(x, y)
      local along = square > 0 and math.max(0, math.min(1, ((x - x1) * dx + (y - y1) * dy) / square)) or 0
      local far_x, far_y = x - x1 - along * dx, y - y1 - along * dy
      return half + 0.5 - math.sqrt(far_x * far_x + far_y * far_y)
    end)
end

local function draw_circle(canvas, x, y, radius, color)
  draw_line(canvas, x, y, x, y, 2 * radius, color)
end

-- A pixel's share is the part of its area that the rectangle covers.
local function draw_rectangle(canvas, left, top, right, bottom, color)
  fill(canvas, left - 1, top - 1, right + 1, bottom + 1, color, function(x, y)
    local across = math.min(x + 0.5, right) - math.max(x - 0.5, left)
    local along = math.min(y + 0.5, bottom) - math.max(y - 0.5, top)
    return across > 0 and along > 0 and across * along or 0
  end)
end

-- Texts begin, end or have their middle at x, and lead upwards where they are rotated. Characters that the font lacks are "?".
local function draw_text(canvas, text, x, y, options)
  local characters = {}
  for character in svg.characters(text) do characters[#characters + 1] = font[character] or font["?"] end
  local dot = math.max(1, math.floor(options.size * SCALE * 0.09 + 0.5))
  local width = (#characters * 6 - 1) * dot
  local from = options.anchor == "middle" and -width / 2 or options.anchor == "end" and -width or 0
  for i, columns in ipairs(characters) do
    for column = 1, 5 do
      for row = 0, 7 do
        if bit.band(bit.rshift(columns[column], row), 1) == 1 then
          local across, along = math.floor(from + ((i - 1) * 6 + column - 1) * dot), (row - 7) * dot
          local left, top = x + across, y + along
          if options.rotate then left, top = x + along, y - across - dot end
          left, top = math.floor(left), math.floor(top)
          draw_rectangle(canvas, left, top, left + dot + (options.weight and 1 or 0), top + dot, options.fill)
        end
      end
    end
  end
end

-- A picture {height, width, 3} of bytes on the host, each of whose pixels becomes a rectangle: for each pixel of the canvas the nearest one
-- of the picture is taken.
local function draw_picture(canvas, list)
  local height, width = list.pixels.shape[1], list.pixels.shape[2]
  local source = native.cast("const uint8_t *", C.flow_tensor_data(native.pointer(list.pixels)))
  local left, top = math.floor(list.x * SCALE + 0.5), math.floor(list.y * SCALE + 0.5)
  local across, along = math.floor(list.width * SCALE + 0.5), math.floor(list.height * SCALE + 0.5)
  for y = 0, along - 1 do
    for x = 0, across - 1 do
      local from = 3 * (math.floor(y * height / along) * width + math.floor(x * width / across))
      local at_x, at_y = left + x, top + y
      if at_x >= 0 and at_x < canvas.width and at_y >= 0 and at_y < canvas.height then
        mix(canvas, at_x, at_y, source[from], source[from + 1], source[from + 2], 1)
      end
    end
  end
end

local shapes = {}

function shapes.rect(canvas, list)
  local left, top = (list.x or 0) * SCALE, (list.y or 0) * SCALE
  local right, bottom, width = left + list.width * SCALE, top + list.height * SCALE, (list.stroke_width or 0) * SCALE
  draw_rectangle(canvas, left, top, right, bottom, list.fill)
  if not list.stroke or width <= 0 then return end
  draw_line(canvas, left, top, right, top, width, list.stroke)
  draw_line(canvas, right, top, right, bottom, width, list.stroke)
  draw_line(canvas, right, bottom, left, bottom, width, list.stroke)
  draw_line(canvas, left, bottom, left, top, width, list.stroke)
end

-- A triangle: each side bounds it by the distance from its line.
local function draw_triangle(canvas, points, color)
  local x1, y1, x2, y2, x3, y3 = unpack(points)
  local turn = (x2 - x1) * (y3 - y1) - (y2 - y1) * (x3 - x1) < 0 and -1 or 1
  local function inside(ax, ay, bx, by, x, y)
    local length = math.sqrt((bx - ax) ^ 2 + (by - ay) ^ 2)
    return length == 0 and 0 or turn * ((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / length
  end
  fill(canvas, math.min(x1, x2, x3) - 1, math.min(y1, y2, y3) - 1, math.max(x1, x2, x3) + 1, math.max(y1, y2, y3) + 1, color,
    function(x, y)
      return 0.5 + math.min(inside(x1, y1, x2, y2, x, y), inside(x2, y2, x3, y3, x, y), inside(x3, y3, x1, y1, x, y))
    end)
end

local STEPS = 16      -- lines for a curve

-- The paths of model.lua: lines and cubic curves (M, L, C), or a filled triangle.
function shapes.path(canvas, list)
  local points = {}
  for letter, numbers in list.d:gmatch "(%a)([^%a]*)" do
    local n = {}
    for value in numbers:gmatch "-?[%d.]+" do n[#n + 1] = tonumber(value) * SCALE end
    if letter == "C" then
      local x, y = points[#points - 1], points[#points]
      for i = 1, STEPS do
        local t = i / STEPS
        local a, b, c, d = (1 - t) ^ 3, 3 * t * (1 - t) ^ 2, 3 * t ^ 2 * (1 - t), t ^ 3
        points[#points + 1] = a * x + b * n[1] + c * n[3] + d * n[5]
        points[#points + 1] = a * y + b * n[2] + c * n[4] + d * n[6]
      end
    else
      for _, value in ipairs(n) do points[#points + 1] = value end
    end
  end
  if list.fill ~= "none" then return draw_triangle(canvas, points, list.fill) end
  for i = 1, #points - 2, 2 do
    draw_line(canvas, points[i], points[i + 1], points[i + 2], points[i + 3], (list.stroke_width or 1) * SCALE, list.stroke)
  end
end

function shapes.line(canvas, list)
  draw_line(canvas, list.x1 * SCALE, list.y1 * SCALE, list.x2 * SCALE, list.y2 * SCALE, (list.stroke_width or 1) * SCALE, list.stroke)
end

function shapes.circle(canvas, list) draw_circle(canvas, list.cx * SCALE, list.cy * SCALE, list.r * SCALE, list.fill) end

function shapes.polyline(canvas, list)
  local points = list.corners
  for i = 1, #points - 2, 2 do
    draw_line(canvas, points[i] * SCALE, points[i + 1] * SCALE, points[i + 2] * SCALE, points[i + 3] * SCALE,
      (list.stroke_width or 1) * SCALE, list.stroke)
  end
end

function shapes.cross(canvas, list)
  local x, y, size, width = list.x * SCALE, list.y * SCALE, list.size * SCALE, list.stroke_width * SCALE
  draw_line(canvas, x, y, x + size, y + size, width, list.stroke)
  draw_line(canvas, x + size, y, x, y + size, width, list.stroke)
end

function shapes.text(canvas, list) draw_text(canvas, list.text, list.x * SCALE, list.y * SCALE, list) end

shapes.picture = draw_picture

-- The drawing as uint8 {height, width, 3}, two pixels for each of its units.
function raster.pixels(drawing)
  local canvas = new_canvas(math.ceil(drawing.width * SCALE), math.ceil(drawing.height * SCALE))
  for _, shape in ipairs(drawing.shapes) do shapes[shape.element](canvas, shape.list) end
  return canvas.tensor
end

return raster
