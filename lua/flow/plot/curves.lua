-- curves.lua: curves as a drawing, one panel a metric: history:plot(file), flow.plot.lines, and the frame of flow.plot.histogram.
--
-- series.lua makes panels of what the user gives: { name =, curves = { { name =, points = { { x =, value = } } } }, bars =, across =, along
-- =, step =, is_whole = }. For each one this file makes a frame: the rectangle of the curves in the drawing's pixels, with an axis of
-- scale.lua for either direction; then it draws grid, labels, bars, curves and legend into it. terminal.lua does the same in characters.

local errors = require "flow.errors"
local scale = require "flow.plot.scale"
local series = require "flow.plot.series"
local svg = require "flow.plot.svg"

local curves = {}

-- Of curves that are drawn together, training and validation first: told apart by eyes of every kind, and the first two in grey.
local COLORS = { "#1f6fb4", "#d9601a", "#2a9d5c", "#a03fa8", "#b8860b", "#128a9c", "#c0392b", "#7a6b5d" }
local INK, MUTED, GRID, AXIS = "#24292f", "#66707b", "#e6e9ed", "#9aa3ad"
local MARGIN = { left = 64, right = 18, top = 58, bottom = 46 }      -- around the curves of a panel
local GAP, DOTS_UP_TO = 12, 40
curves.COLORS = COLORS

-- Options of a picture, checked, as a new table { title =, logarithmic =, width =, height = } (pixels of one panel). Raises for what does
-- not fit; what: the caller, for messages.
function curves.options(what, options)
  local function size(name, default, least)
    local value = options[name]
    if value == nil then return default end
    if type(value) ~= "number" or not (value >= least and value <= 10000) then
      errors.raise("%s: %s is the pixels of one panel, %d to 10000, got %s", what, name, least, errors.describe(value))
    end
    return value
  end
  if options.yscale ~= nil and options.yscale ~= "linear" and options.yscale ~= "log" then
    errors.raise("%s: yscale is \"linear\" or \"log\", got %s", what, errors.describe(options.yscale))
  end
  for _, name in ipairs { "title", "xlabel", "ylabel" } do
    if options[name] ~= nil and type(options[name]) ~= "string" then
      errors.raise("%s: %s is a string, got %s", what, name, errors.describe(options[name]))
    end
  end
  return { title = options.title, logarithmic = options.yscale == "log", width = size("width", 470, 240),
           height = size("height", 320, 200) }
end

---- a panel --------------------------------------------------------------------------------------------------------------------

-- Where the curves are in the picture, and how a step and a value become a place. x, y: the panel's upper left corner. The frame's own x,
-- y, width and height are those inside of the margins. values: the axis of values, nil where the panel has no value with a place; place_y
-- and what calls it must not be used then. across: the axis of steps.
local function new_frame(panel, x, y, options)
  local frame = { x = x + MARGIN.left, y = y + MARGIN.top, logarithmic = options.logarithmic,
                  width = options.width - MARGIN.left - MARGIN.right, height = options.height - MARGIN.top - MARGIN.bottom }
  local range = series.ranges(panel, options.logarithmic)
  frame.range = range
  local rows = math.max(3, math.floor(frame.height / 42))
  if not range.low then frame.values = nil
  elseif options.logarithmic then frame.values = scale.logarithmic(range.low, range.high, rows)
  else frame.values = scale.linear(range.low, range.high, rows) end
  local first, last = range.first or 1, range.last or 1
  frame.across = series.axis(panel, first, last, math.max(2, math.floor(frame.width / (26 + 8 * math.min(6, #tostring(last))))))
  function frame.place_x(value) return frame.x + frame.width * scale.share(frame.across, value) end
  function frame.place_y(value) return frame.y + frame.height * (1 - scale.share(frame.values, value)) end
  return frame
end

-- Grid lines and labels of values at the left, ticks and labels of steps below, the axes' names, and a sentence where there is nothing to
-- see.
local function draw_axes(drawing, frame, panel)
  local x, y, right, bottom = frame.x, frame.y, frame.x + frame.width, frame.y + frame.height
  for _, tick in ipairs(frame.values and frame.values.ticks or {}) do
    local at = frame.place_y(tick.value)
    drawing:add("line", { x1 = x, y1 = at, x2 = right, y2 = at, stroke = GRID })
    drawing:text(x - 8, at + 4, tick.label, { size = 11.5, anchor = "end", fill = MUTED })
  end
  drawing:add("line", { x1 = x, y1 = bottom, x2 = right, y2 = bottom, stroke = AXIS })
  for _, tick in ipairs(frame.across.ticks) do
    local at = frame.place_x(tick.value)
    drawing:add("line", { x1 = at, y1 = bottom, x2 = at, y2 = bottom + 4, stroke = AXIS })
    drawing:text(at, bottom + 18, tick.label, { size = 11.5, anchor = "middle", fill = MUTED })
  end
  drawing:text((x + right) / 2, bottom + 36, panel.across, { size = 12, anchor = "middle", fill = MUTED })
  if panel.along then
    drawing:text(x - 50, (y + bottom) / 2, panel.along, { size = 12, anchor = "middle", fill = MUTED, rotate = -90 })
  end
  if not frame.values then
    drawing:text((x + right) / 2, (y + bottom) / 2, frame.logarithmic and "no finite value above 0" or "no finite value",
      { size = 13, anchor = "middle", fill = MUTED })
  end
end

-- The curve's unbroken pieces; a value that cannot be drawn breaks it, and is a cross at the lower edge. dots: a circle at each value;
-- without it only at the last one, and where a piece has one value, of which a line would show nothing. across: what x is called in
-- tooltips.
local function draw_curve(drawing, frame, curve, color, dots, across)
  local points, last = {}, nil
  local function where(point) return ("%s: %s in %s %.6g"):format(curve.name, series.value_text(point.value), across, point.x) end
  local function finish()
    if #points > 2 then
      drawing:polyline(points, { stroke = color, stroke_width = 2, stroke_linejoin = "round", stroke_linecap = "round" })
    elseif #points == 2 and not dots then
      drawing:add("circle", { cx = points[1], cy = points[2], r = 3, fill = color })
    end
    points = {}
  end
  for _, point in ipairs(curve.points) do
    local x = frame.place_x(point.x)
    local drawn = series.has_place(point.value) and frame.values and not (frame.logarithmic and point.value <= 0)
    if drawn then
      points[#points + 1], points[#points + 2] = x, frame.place_y(point.value)
    else
      finish()
      local y = frame.y + frame.height
      drawing:cross(x - 3.5, y - 12, 7, { stroke = color, stroke_width = 2 }, where(point))
    end
    last = drawn and point or last
  end
  finish()
  for _, point in ipairs(curve.points) do
    if (dots or point == last) and series.has_place(point.value) and frame.values and not (frame.logarithmic and point.value <= 0) then
      drawing:add("circle", { cx = frame.place_x(point.x), cy = frame.place_y(point.value), r = 3.2, fill = color, stroke = "#ffffff",
                              stroke_width = 1 }, where(point))
    end
  end
end

-- Names of the curves with their last values, side by side above the frame. Each curve has the same room; a name that is longer is cut.
local function draw_legend(drawing, frame, panel)
  local x, y = frame.x, frame.y - 14
  local room = frame.width / #panel.curves
  for i, curve in ipairs(panel.curves) do
    local at = x + (i - 1) * room
    local last = curve.points[#curve.points]
    local value = last and series.value_text(last.value) or ""
    local space = room - 38 - svg.text_width(value, 12)
    local name = svg.fit_text(curve.name, 12, space)
    drawing:add("line", { x1 = at, y1 = y - 4, x2 = at + 16, y2 = y - 4, stroke = COLORS[(i - 1) % #COLORS + 1], stroke_width = 3,
                          stroke_linecap = "round" })
    drawing:text(at + 23, y, curve.name, { size = 12, fill = INK, width = space })
    drawing:text(at + 23 + svg.text_width(name, 12) + 7, y, value, { size = 12, fill = MUTED })
  end
end

-- One panel with its upper left corner at x, y. The first curve is drawn last, so that it lies on top of the others.
local function draw_panel(drawing, panel, x, y, options)
  local frame = new_frame(panel, x, y, options)
  drawing:text(frame.x, y + 26, panel.name, { size = 15, weight = "600", fill = INK, width = frame.width })
  draw_legend(drawing, frame, panel)
  draw_axes(drawing, frame, panel)
  for _, bar in ipairs(panel.bars or {}) do
    local left, right, top = frame.place_x(bar.left), frame.place_x(bar.right), frame.place_y(bar.value)
    drawing:add("rect", { x = left + 0.5, y = top, width = math.max(right - left - 1, 1), height = frame.y + frame.height - top,
                          fill = COLORS[1] }, ("%s to %s: %d"):format(series.value_text(bar.left), series.value_text(bar.right), bar.value))
  end
  local longest = 0
  for _, curve in ipairs(panel.curves) do longest = math.max(longest, #curve.points) end
  for i = #panel.curves, 1, -1 do
    draw_curve(drawing, frame, panel.curves[i], COLORS[(i - 1) % #COLORS + 1], longest <= DOTS_UP_TO, panel.step)
  end
end

-- The panels as a drawing (svg.lua), and what it shows in words. options: of curves.options. Up to three panels stand beside each other,
-- four in two rows, more in rows of three.
function curves.draw(panels, options)
  local columns = #panels <= 3 and #panels or #panels == 4 and 2 or 3
  local rows = math.ceil(#panels / columns)
  local head = options.title and 40 or 0
  local drawing = svg.new(columns * options.width + (columns - 1) * GAP, head + rows * options.height + (rows - 1) * GAP)
  drawing:add("rect", { width = drawing.width, height = drawing.height, fill = "#ffffff" })
  if options.title then
    drawing:text(drawing.width / 2, 30, options.title,
      { size = 18, weight = "600", anchor = "middle", fill = INK, width = drawing.width - 40 })
  end
  for i, panel in ipairs(panels) do
    local column, row = (i - 1) % columns, math.floor((i - 1) / columns)
    draw_panel(drawing, panel, column * (options.width + GAP), head + row * (options.height + GAP), options)
  end
  local names = {}
  for i, panel in ipairs(panels) do names[i] = panel.name end
  return drawing, options.title or "curves: " .. table.concat(names, ", ")
end

return curves
