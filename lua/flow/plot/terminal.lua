-- terminal.lua: history:plot() without a file: the curves in characters, Braille dots where the terminal writes UTF-8 and plain
-- ASCII elsewhere, as wide as the terminal. It takes the panels that series.lua makes and the axes of scale.lua, as curves.lua does, and
-- draws into a canvas: { across =, down = cells, columns =, rows = dots, unicode =, cells = by row and column, either the bits of a Braille
-- character or a mark of ASCII; nil: empty }.

local host = require "flow.host"
local native = require "flow.ffi"
local errors = require "flow.errors"
local scale = require "flow.plot.scale"
local series = require "flow.plot.series"
local svg = require "flow.plot.svg"

local C = native.C
local terminal = {}

local MOST_COLUMNS, MOST_LINES = 120, 1000
local MARKS = { "*", "o", "+", "x", "#", "@", "%", "&" }     -- of curves in ASCII
local DOTS = { { 1, 8 }, { 2, 16 }, { 4, 32 }, { 64, 128 } } -- bits of a Braille character by row and column (Unicode, block U+2800)

-- Whether the environment says that text is UTF-8, as setlocale(LC_CTYPE, "") would read it.
local function is_utf8()
  for _, name in ipairs { "LC_ALL", "LC_CTYPE", "LANG" } do
    local value = host.getenv(name)
    if value and value ~= "" then return value:lower():find("utf%-?8") ~= nil end
  end
  return false
end

-- The character U+2800 + bits in UTF-8; bits: 0 to 255.
local function braille(bits)
  return "\226" .. string.char(160 + math.floor(bits / 64), 128 + bits % 64)
end

-- Characters of UTF-8: bytes that do not continue one.
local function length(text)
  return select(2, text:gsub("[^\128-\191]", ""))
end

-- A grid of cells, across x down of them, each of 2 x 4 dots in Unicode and 1 x 1 in ASCII.
local function new_canvas(across, down, unicode)
  local canvas = { across = across, down = down, unicode = unicode, cells = {}, columns = unicode and 2 * across or across,
                   rows = unicode and 4 * down or down }
  for row = 1, down do canvas.cells[row] = {} end
  return canvas
end

-- The dot in column and row from 0. Curves after the first are dashed: each leaves out other columns.
local function set(canvas, column, row, curve)
  if column < 0 or row < 0 or column >= canvas.columns or row >= canvas.rows then return end
  if canvas.unicode then
    if curve > 1 and math.floor(column / curve) % 2 == 1 then return end
    local line = canvas.cells[math.floor(row / 4) + 1]
    local cell = math.floor(column / 2) + 1
    local bit_value = DOTS[row % 4 + 1][column % 2 + 1]
    local before = line[cell] or 0
    if math.floor(before / bit_value) % 2 == 0 then line[cell] = before + bit_value end
  elseif not canvas.cells[row + 1][column + 1] then
    canvas.cells[row + 1][column + 1] = MARKS[(curve - 1) % #MARKS + 1]
  end
end

-- A dot for each column or row between two places in dots, whichever are more. curve: its number.
local function draw_line(canvas, x0, y0, x1, y1, curve)
  local steps = math.max(math.abs(x1 - x0), math.abs(y1 - y0), 1)
  for i = 0, steps do
    set(canvas, math.floor(x0 + (x1 - x0) * i / steps + 0.5), math.floor(y0 + (y1 - y0) * i / steps + 0.5), curve)
  end
end

-- A line from point to point; values that are not finite leave a gap.
local function draw_curve(canvas, curve, number, epochs, values)
  local last_x, last_y
  for _, point in ipairs(curve.points) do
    if series.has_place(point.value) then
      local x = scale.share(epochs, point.x) * (canvas.columns - 1)
      local y = (1 - scale.share(values, point.value)) * (canvas.rows - 1)
      draw_line(canvas, last_x or x, last_y or y, x, y, number)
      last_x, last_y = x, y
    else
      last_x = nil
    end
  end
end

-- A row of cells as text; row: from 1.
local function cell_text(canvas, row)
  local parts = {}
  for i = 1, canvas.across do
    local cell = canvas.cells[row][i]
    parts[i] = not cell and " " or canvas.unicode and braille(cell) or cell
  end
  return table.concat(parts)
end

-- For each curve a sample of its line, its name and its last value.
local function legend(panel, unicode)
  local parts = {}
  for i, curve in ipairs(panel.curves) do
    local last = curve.points[#curve.points]
    local mark = unicode and (i == 1 and "⠒⠒" or i == 2 and "⠒ " or "⠂" .. i) or MARKS[(i - 1) % #MARKS + 1]
    parts[i] = ("%s %s %s"):format(mark, curve.name, last and series.value_text(last.value) or "")
  end
  return table.concat(parts, "   ")
end

-- The first `width` characters, not bytes.
local function cut(text, width)
  if length(text) <= width then return text end
  local kept = {}
  for character in svg.characters(text) do
    if #kept == width then break end
    kept[#kept + 1] = character
  end
  return table.concat(kept)
end

-- The text in exactly `width` characters: cut, or filled with spaces.
function terminal.fit(text, width) return cut(text, width) .. (" "):rep(width - length(text)) end

-- A panel: legend, plot with labels at the left, axis and its labels below. Later curves are drawn first, so that the first one is on
-- top. A label is left out where it would touch the one before.
local function panel_lines(panel, width, height, unicode, lines)
  local range = series.ranges(panel)
  lines[#lines + 1] = cut(legend(panel, unicode), width)
  if not range.low then
    lines[#lines + 1] = "no finite value"
    return
  end
  local values = scale.linear(range.low, range.high, math.max(2, math.floor(height / 2)))
  local labels, margin = {}, 0
  for _, tick in ipairs(values.ticks) do
    local row = math.floor((1 - scale.share(values, tick.value)) * (height - 1) + 0.5) + 1
    labels[row] = tick.label
    margin = math.max(margin, #tick.label)
  end
  local across = math.max(4, width - margin - 2)
  local epochs = series.axis(panel, range.first, range.last, math.max(2, math.floor(across / 10)))
  local canvas = new_canvas(across, height, unicode)
  for i = #panel.curves, 1, -1 do draw_curve(canvas, panel.curves[i], i, epochs, values) end
  for row = 1, height do
    local edge = unicode and (labels[row] and "┤" or "│") or (labels[row] and "+" or "|")
    local label = ("%" .. margin .. "s"):format(labels[row] or "")
    lines[#lines + 1] = (label .. " " .. edge .. cell_text(canvas, row)):gsub("%s+$", "")
  end
  local below, marks = {}, {}
  for i = 1, across do below[i], marks[i] = " ", unicode and "─" or "-" end
  for _, tick in ipairs(epochs.ticks) do
    local at = math.floor(scale.share(epochs, tick.value) * (across - 1) + 0.5) + 1
    local first = math.max(1, math.min(at - math.floor(#tick.label / 2), across - #tick.label + 1))
    marks[at] = unicode and "┴" or "+"
    if first == 1 or below[first - 1] == " " then
      for k = 1, #tick.label do below[first + k - 1] = tick.label:sub(k, k) end
    end
  end
  lines[#lines + 1] = (" "):rep(margin + 1) .. (unicode and "└" or "+") .. table.concat(marks)
  lines[#lines + 1] = ((" "):rep(margin + 2) .. table.concat(below)):gsub("%s+$", "")
end

-- Bars as lines of text: from, to, count.
local function bar_lines(panel, width, unicode, lines)
  local most, widest = 1, 0
  for _, bar in ipairs(panel.bars) do
    most, widest = math.max(most, bar.value), math.max(widest, #series.value_text(bar.left), #series.value_text(bar.right))
  end
  local room = width - 2 * widest - 8 - #tostring(most)
  for _, bar in ipairs(panel.bars) do
    local from, to = series.value_text(bar.left), series.value_text(bar.right)
    local filled = math.floor(bar.value / most * math.max(room, 4) + 0.5)
    lines[#lines + 1] = ("%" .. widest .. "s to %" .. widest .. "s %s%s %d"):format(from, to, unicode and "│" or "|",
      (unicode and "█" or "#"):rep(filled), bar.value)
  end
end

-- Panels as lines of text, an empty line between two. options: title, width, height of one panel in lines, unicode (else as the environment
-- says). Raises for a width or height that is out of range.
function terminal.text(what, panels, options)
  local columns = C.flow_terminal_columns()
  local width, height = options.width or (columns > 0 and columns - 1 or 79), options.height or 10
  if type(width) ~= "number" or not (width >= 20) then      -- more than MOST_COLUMNS are not used
    errors.raise("%s: width is a number from 20, got %s", what, errors.describe(width))
  end
  if type(height) ~= "number" or not (height >= 3 and height <= MOST_LINES) then
    errors.raise("%s: height is a number from 3 to %d, got %s", what, MOST_LINES, errors.describe(height))
  end
  local unicode = options.unicode
  if unicode == nil then unicode = is_utf8() end
  local lines = {}
  if options.title then lines[1] = options.title end
  for i, panel in ipairs(panels) do
    if i > 1 then lines[#lines + 1] = "" end
    local across = math.floor(math.min(width, MOST_COLUMNS))
    if panel.bars then bar_lines(panel, across, unicode, lines)
    else panel_lines(panel, across, math.floor(height), unicode, lines) end
  end
  return table.concat(lines, "\n") .. "\n"
end

return terminal
