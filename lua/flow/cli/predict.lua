-- cli/predict.lua: flowlua predict m.keras a.jpg b.png: what a saved classifier sees in pictures, the likeliest classes first.

local flow = require "flow"

local read_options = require "flow.cli.options"

local USAGE = [[
Usage: flowlua predict [options] MODEL PICTURE...

Prints what a saved classifier sees in pictures, the likeliest classes first.

  --top NUMBER      how many classes (3)
  --classes a,b,c   their names, if the file has none]]

local raise = flow.errors.raise
local MODES = { [1] = "grayscale", [3] = "rgb", [4] = "rgba" }

-- { height, width }, nil where the model takes any, and how it wants colours.
local function picture_size(model, path)
  local inputs = rawget(model, "inputs")
  local shape = inputs and #inputs == 1 and inputs[1].shape
  if not shape or #shape ~= 4 or not MODES[shape[4]] then
    raise("predict: %s takes no pictures: its input is not {height, width, channels} with 1, 3 or 4 channels", path)
  end
  if shape[2] < 1 and shape[3] < 1 then return nil, MODES[shape[4]] end
  if shape[2] < 1 or shape[3] < 1 then raise("predict: %s takes pictures of which one side only is known", path) end
  return { shape[2], shape[3] }, MODES[shape[4]]
end

-- The names of `count` classes: those of --classes, else those that the model's file has, else none, an empty list. Raises where there are
-- more or fewer.
local function names_of(model, given, count)
  local names = {}
  for name in given:gmatch("[^,]+") do names[#names + 1] = name end
  if #names == 0 then names = model.class_names or {} end
  if #names > 0 and #names ~= count then
    raise("predict: there are %d names of classes for %d outputs", #names, count)
  end
  return names
end

-- The positions of a list of numbers, the largest first, NaN last: table.sort needs a consistent order, and comparisons with NaN are false
-- both ways.
local function ranked(row)
  local order = {}
  for i = 1, #row do order[i] = i end
  local function value(i) return row[i] == row[i] and row[i] or -math.huge end
  table.sort(order, function(a, b)
    if value(a) ~= value(b) then return value(a) > value(b) end
    return a < b
  end)
  return order
end

return function(_, arguments)
  local options = read_options("predict", USAGE, { classes = "", top = 3 }, arguments)
  local path = options[1]
  if not path or not options[2] then raise("predict: which model and pictures? flowlua predict m.keras a.jpg b.png") end
  local model = flow.load_model(path, { compile = false })
  local size, mode = picture_size(model, path)
  for i = 2, #options do
    local picture = flow.image.load(options[i], { size = size, color_mode = mode })
    local output = model:predict(picture:expand_dims(1), { verbose = 0 })
    local row = output:reshape({ -1 }):totable()
    local names = names_of(model, options.classes, #row)
    local parts = {}
    for rank, class in ipairs(ranked(row)) do
      if rank > options.top then break end
      parts[rank] = ("%s %.4g"):format(names[class] or ("class %d"):format(class - 1), row[class])
    end
    print(options[i] .. ": " .. table.concat(parts, ", "))
  end
end
