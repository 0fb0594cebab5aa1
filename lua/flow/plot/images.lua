-- images.lua: flow.plot.images: pictures in a grid, each below its title, as a drawing or in the characters of a terminal. read() turns
-- what the user gives into bytes on the host; draw() and text() take what it returns: { pictures = uint8 tensors {height, width, 3}, titles
-- = texts or empty, columns = }.

local errors = require "flow.errors"
local native = require "flow.ffi"
local ops = require "flow.tensor.ops"
local svg = require "flow.plot.svg"

local images = {}

local INK, GAP, LEAST_SIDE, TITLE = "#24292f", 12, 120, 22
local RAMP = " .:-=+*#%@"      -- from black to white

-- Bytes {height, width, 3} each. Whole numbers are bytes already; of floats 0 to 1 is the whole range, or 0 to 255 where one is above 1,
-- or, where one is negative, the least to the greatest. Values that are not finite are 0; true is white.
local function to_bytes(what, picture)
  if picture.rank == 2 then picture = picture:reshape { picture.shape[1], picture.shape[2], 1 } end
  local channels = picture.shape[3]
  if picture.rank ~= 3 or channels ~= 1 and channels ~= 3 and channels ~= 4 then
    errors.raise("%s: a picture is {height, width} or {height, width, 1, 3 or 4}, got {%s}", what,
      table.concat(picture.shape, ", "))
  end
  if picture.size == 0 then errors.raise("%s: a picture has no pixels: {%s}", what, table.concat(picture.shape, ", ")) end
  if channels == 4 then picture = picture[{ {}, {}, { 1, 3 } }] end
  if picture.dtype == "bool" then picture = picture:to("float32") end
  if picture.dtype:find("float") then
    picture = ops.where(picture:isfinite(), picture, 0)
    local low, high = picture:min():item(), picture:max():item()
    if low < 0 then picture = (picture - low) * (255 / math.max(high - low, 1e-12))
    elseif high <= 1 then picture = picture * 255 end
  end
  picture = picture:to("float32"):maximum(0):minimum(255):round():to("uint8"):to("cpu")
  if channels == 1 then picture = ops.concat({ picture, picture, picture }, 3) end
  return picture:contiguous()
end

-- The pictures of a tensor or a list as bytes, at most `most`: the others are not read. A tensor of two axes, or of three whose last one is
-- 1 or 3, is one picture; another one of three or four axes is a batch of them. Raises where there is none.
local function read(what, given, most)
  local list = {}
  local is_batch = native.is_tensor(given)
  if is_batch and (given.rank == 2 or given.rank == 3 and (given.shape[3] == 3 or given.shape[3] == 1)) then
    given, is_batch = { given }, false
  end
  if is_batch and given.rank ~= 3 and given.rank ~= 4 or not is_batch and type(given) ~= "table" then
    errors.raise("%s: images are a tensor {count, height, width, channels} or a list of pictures, got %s", what, errors.describe(given))
  end
  local count = is_batch and given.shape[1] or #given
  for i = 1, math.min(count, most) do
    if not native.is_tensor(given[i]) then errors.raise("%s: picture %d is a tensor, got %s", what, i, errors.describe(given[i])) end
    list[i] = to_bytes(what, given[i])
  end
  if #list == 0 then errors.raise("%s: there is nothing to plot: no picture was given", what) end
  return list
end

-- The title of each picture as text: of a list or a tensor of labels; class_names: those that labels from 0 stand for. An empty list
-- without options.titles; raises where there are fewer titles than pictures.
local function titles_of(what, count, options)
  local titles, given, list = {}, options.titles, {}
  if given == nil then return titles end
  if native.is_tensor(given) then given = given:reshape { -1 }:totable() end
  if type(given) ~= "table" then errors.raise("%s: titles are a list or a tensor of labels, got %s", what, errors.describe(given)) end
  for i = 1, count do list[i] = given[i] end
  for i, title in ipairs(list) do
    local named = options.class_names and type(title) == "number" and options.class_names[title + 1]
    titles[i] = tostring(named or title)
  end
  if #titles < count then errors.raise("%s: %d titles for %d pictures", what, #titles, count) end
  return titles
end

-- What is shown: { pictures =, titles =, columns = } (see above). options: max_images, titles, class_names, columns; without columns the
-- grid is about square.
function images.read(what, given, options)
  local pictures = read(what, given, options.max_images)
  local titles = titles_of(what, #pictures, options)
  return { pictures = pictures, titles = titles, columns = math.min(options.columns or math.ceil(math.sqrt(#pictures)), #pictures) }
end

-- The grid as a drawing, and what it shows in words. Small pictures are drawn larger, by one whole factor for all, so that the largest side
-- has LEAST_SIDE pixels or more. Each has a cell for the largest of them and stands in its middle.
function images.draw(shown, title)
  local count, columns, widest, highest = #shown.pictures, shown.columns, 0, 0
  for _, picture in ipairs(shown.pictures) do
    widest, highest = math.max(widest, picture.shape[2]), math.max(highest, picture.shape[1])
  end
  local factor = math.max(1, math.ceil(LEAST_SIDE / math.max(widest, highest)))
  local head, above = title and 44 or GAP, next(shown.titles) and TITLE or 0
  local across, along = widest * factor + GAP, highest * factor + GAP + above
  local drawing = svg.new(columns * across + GAP, head + math.ceil(count / columns) * along)
  drawing:add("rect", { width = drawing.width, height = drawing.height, fill = "#ffffff" })
  if title then
    drawing:text(drawing.width / 2, 30, title, { size = 18, weight = "600", anchor = "middle", fill = INK, width = drawing.width - 20 })
  end
  for i, picture in ipairs(shown.pictures) do
    local x, y = GAP + (i - 1) % columns * across, head + math.floor((i - 1) / columns) * along
    local width, height = picture.shape[2] * factor, picture.shape[1] * factor
    if shown.titles[i] then
      drawing:text(x + widest * factor / 2, y + 14, shown.titles[i], { size = 13, anchor = "middle", fill = INK, width = widest * factor })
    end
    drawing:picture(x + (widest * factor - width) / 2, y + above, width, height, picture)
  end
  return drawing, title or ("%d pictures"):format(count)
end

-- A picture as lines of `width` characters, two beside each other for a square.
local function lines_of(picture, width)
  local height = math.max(1, math.floor(picture.shape[1] * width / picture.shape[2] / 2 + 0.5))
  local small = require("flow.tensor.image").resize(picture, { height, width }, { interpolation = "area" })
  local rows, lines = small:totable(), {}
  for y, row in ipairs(rows) do
    local characters = {}
    for x, pixel in ipairs(row) do
      local grey = (0.299 * pixel[1] + 0.587 * pixel[2] + 0.114 * pixel[3]) / 256
      local at = math.floor(grey * #RAMP) + 1
      characters[x] = RAMP:sub(at, at)
    end
    lines[y] = table.concat(characters)
  end
  return lines
end

-- In characters, as many beside each other as fit into `room` columns of the terminal, at most shown.columns: a text that ends with a line
-- end. Spaces at the ends of lines are left out.
function images.text(shown, room, title)
  local columns, lines = math.max(1, math.min(shown.columns, math.floor(room / 16))), {}
  local width = math.min(math.floor((room + 2) / columns) - 2, 56)
  local terminal = require "flow.plot.terminal"
  if title then lines[1] = title end
  for first = 1, #shown.pictures, columns do
    local blocks, height, heads = {}, 0, {}
    for i = first, math.min(first + columns - 1, #shown.pictures) do
      local block = lines_of(shown.pictures[i], width)
      blocks[#blocks + 1], height = block, math.max(height, #block)
      if shown.titles[i] then heads[#heads + 1] = terminal.fit(shown.titles[i], width) end
    end
    if #heads > 0 then lines[#lines + 1] = table.concat(heads, "  ") end
    for row = 1, height do
      local parts = {}
      for k, block in ipairs(blocks) do parts[k] = block[row] or (" "):rep(width) end
      lines[#lines + 1] = table.concat(parts, "  ")
    end
  end
  return (table.concat(lines, "\n") .. "\n"):gsub(" +\n", "\n")
end

return images
