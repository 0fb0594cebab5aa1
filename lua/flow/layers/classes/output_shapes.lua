-- output_shapes.lua: what a layer gives for inputs of some shapes, without a call, and what it was built for:
--
--   layers.Dense(8):compute_output_shape { -1, 4 }              { -1, 8 }; -1 stands for a size that is not known
--   layers.Add():compute_output_shape { { -1, 4 }, { -1, 4 } }  of a list of inputs; a table by name where the layer takes one
--   attention:compute_output_shape({ -1, 5, 8 }, { -1, 7, 8 })  of several inputs
--   layer:compute_output_spec(flow.Input { 4 })                 the symbolic tensor, which no graph keeps
--
-- A layer of the library that is not built yet stays so: a copy of it answers.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local arguments = require "flow.arguments"
local printed = require "flow.classes.printed"
local symbolic = require "flow.layers.symbolic"
local extended = require "flow.extended"

local C, raise = native.C, errors.raise
local takes = require("flow.signature").takes

-- A layer like this one that has no variables yet, and draws no numbers where it makes them; itself where only its script can make it.
local function copy_of(layer)
  local class = object.class_of(layer)
  if layer._built or class ~= extended.base(class) or not (layer._handle or layer._children[1]) then return layer end
  local ok, copy = pcall(function() return class.from_config(layer:get_config()) end)
  return ok and copy or layer
end

-- Calls f while the symbolic calls of a layer leave no nodes in it.
local function without_nodes(layer, f)
  local before = #layer._nodes
  C.flow_context_set_blank(native.context, layer._built and 0 or 1)
  local ok, result = pcall(f)
  C.flow_context_set_blank(native.context, 0)
  for i = #layer._nodes, before + 1, -1 do layer._nodes[i] = nil end
  if not ok then error(result, 0) end
  return result
end

-- A list of sizes, of which some may be nil.
local function is_shape(value)
  if type(value) ~= "table" or getmetatable(value) then return false end
  for key, size in pairs(value) do
    if type(key) ~= "number" or type(size) ~= "number" then return false end
  end
  return true
end

-- A symbolic input for a shape with the batch size, nil or -1 where a size is open.
local function input_of(layer, shape, dtype)
  local sizes = {}
  for i = 1, table.maxn(shape) do sizes[i] = shape[i] or -1 end
  local holder = object.new(require("flow.layers").InputLayer):_prepare("InputLayer", { name = layer.name .. "_input" })
  return symbolic.input(holder, { unpack(sizes, 2) }, dtype, sizes[1] ~= -1 and sizes[1] or nil)
end

-- Symbolic tensors in the place of shapes, in lists and tables by name at any depth.
local function inputs_of(layer, value, dtype, depth)
  if is_shape(value) then return input_of(layer, value, dtype) end
  if type(value) ~= "table" or getmetatable(value) then
    raise("%s: compute_output_shape() takes shapes such as {-1, 4}, lists or tables of them, got %s", object.title(layer),
      errors.describe(value))
  end
  local result = {}
  depth = errors.deeper("compute_output_shape()", depth)
  for key, entry in pairs(value) do result[key] = inputs_of(layer, entry, dtype, depth) end
  return result
end

-- The shapes of symbolic tensors, nested as these are.
local function shapes_of(outputs)
  if symbolic.is(outputs) then return symbolic.shape { unpack(outputs.shape) } end
  local result = {}
  for key, entry in pairs(outputs) do result[key] = shapes_of(entry) end
  return result
end

-- Keras' names of inputs of shapes: query_shape = { -1, 5, 8 }.
local function call_with(layer, dtype, ...)
  local given, options = { ... }, nil
  local last = given[#given]
  local key = arguments.is_options(last) and next(last)
  if type(key) == "string" and key:find "_shape$" then
    options, given[#given] = {}, nil
    for name, shape in pairs(last) do options[name:gsub("_shape$", "")] = inputs_of(layer, shape, dtype) end
    if options.input then
      given[1], options.input = options.input, nil
      if next(options) == nil then options = nil end
    end
  end
  local first = #given
  for i = 1, first do given[i] = type(given[i]) == "table" and symbolic.any(given[i]) and given[i] or inputs_of(layer, given[i], dtype) end
  if options then given[#given + 1] = options end
  local results = { layer(unpack(given)) }
  return results[2] ~= nil and results or results[1]
end

return function(Layer)
  -- The shape of its output for an input of this shape, or of these; -1: a size that is not known.
  function Layer:compute_output_shape(...)
    if select("#", ...) == 0 then raise("%s: compute_output_shape() takes the shape of the input, such as {-1, 4}", object.title(self)) end
    local layer, shapes = copy_of(self), { ... }
    local dtypes, problem = self._on_host and { "string", "int64", "float32" } or { "float32" }, nil
    for _, dtype in ipairs(dtypes) do
      local ok, found = pcall(without_nodes, layer, function() return shapes_of(call_with(layer, dtype, unpack(shapes))) end)
      if ok then return printed(found) end
      problem = problem or found
    end
    error(problem, 0)
  end

  -- What it gives for symbolic tensors: symbolic tensors that belong to no graph.
  function Layer:compute_output_spec(...)
    local layer, given = copy_of(self), { ... }
    return without_nodes(layer, function()
      local results = { layer(unpack(given)) }
      return results[2] ~= nil and results or results[1]
    end)
  end

  -- What build() was given, for build_from_config.
  function Layer:get_build_config()
    local shape = rawget(self, "_input_shape")
    if not shape then return nil end
    local named = rawget(self, "_named_shapes")
    if not named or not named[1] then return { input_shape = shape } end
    local shapes = {}
    for _, one in ipairs(named) do shapes[one.name .. "_shape"] = one.shape or nil end
    return { shapes_dict = shapes }
  end

  -- Builds the layer as get_build_config() of another says.
  takes "config: table"
  function Layer:build_from_config(config)
    local shapes = config.input_shape or config.shapes_dict
    if not shapes then raise("%s: build_from_config() takes what get_build_config() gave", object.title(self)) end
    if config.input_shape then return self:build(shapes) end
    without_nodes(self, function() return call_with(self, "float32", shapes) end)
  end
end
