-- annotations.lua: all public functions, classes and methods with their parameters as annotations of the Lua language server (LuaLS), which
-- completes and checks scripts in editors.

local signature = require "flow.signature"

-- The types of the language server by the kinds of signature.lua.
local TYPES = { number = "number", numeric = "number", positive = "number", integer = "integer", whole = "integer", count = "integer",
  boolean = "boolean", string = "string", text = "string", path = "string", callable = "function", table = "table", list = "any[]",
  any = "any", data = "any", frequency = "string|integer", updates = "string|integer", verbosity = "integer|string|boolean" }

-- By what the library's records say (calls.lua).
local RECORD_TYPES = { ["a whole number"] = "integer", ["a number"] = "number", ["true or false"] = "boolean", ["a text"] = "string" }

local function type_of(parameter)
  if parameter.type_text then return RECORD_TYPES[parameter.type_text] or "any" end
  if not parameter.kind then return "any" end
  local list = {}
  for i, name in ipairs(parameter.kind.names) do
    local literal = name:match("^'(.*)'$")
    list[i] = literal and '"' .. literal .. '"' or TYPES[name] or "any"
  end
  return table.concat(list, "|")
end

local KEYWORDS = { ["end"] = true, ["repeat"] = true, ["function"] = true, ["and"] = true, ["or"] = true, ["not"] = true, ["in"] = true }

local function safe(name)
  return KEYWORDS[name] and name .. "_" or name
end

-- "flow.layers.Dense" -> "flow.Layer" for what functions and classes return, where it is known by the name.
local CLASS_OF = { ["flow.layers."] = "flow.layer", ["flow.losses.%u"] = "flow.loss", ["flow.metrics.%u"] = "flow.metric",
  ["flow.optimizers.%u"] = "flow.optimizer", ["flow.callbacks."] = "flow.callback", ["flow.data.Dataset"] = "flow.dataset",
  ["flow.Model$"] = "flow.model", ["flow.Sequential$"] = "flow.model", ["flow.load_model$"] = "flow.model",
  ["flow.Variable$"] = "flow.variable", ["flow.GradientTape$"] = "flow.tape" }

local function result_of(item, path)
  if item.kind == "class" or item.kind == "function" then
    for pattern, class in pairs(CLASS_OF) do
      if path:find("^" .. pattern) then return class end
    end
  end
  for _, name in ipairs(item.names) do      -- an operation
    if name:find("^tensor:") and item.name:find("^flow%.") then return "flow.tensor" end
  end
  return "any"
end

-- The lines of one function; path: "flow.layers.Dense" or "Tensor:sum".
local function lines_of(item, path, lines, skip)
  local record = signature.of(item.f)
  lines[#lines + 1] = ""
  lines[#lines + 1] = "---" .. (item.doc or "")
  if item.example then
    lines[#lines + 1] = "---```lua"
    for line in (item.example .. "\n"):gmatch("(.-)\n") do lines[#lines + 1] = "---" .. line end
    lines[#lines + 1] = "---```"
  end
  local parameters = {}
  for i, parameter in ipairs(record and record.positional or {}) do
    if i > (skip or 0) then
      local name = safe(parameter.name)
      if parameter.variadic then
        lines[#lines + 1] = "---@param ... any " .. parameter.name
        parameters[#parameters + 1] = "..."
      else
        local optional = (parameter.optional or parameter.default_text) and "?" or ""
        lines[#lines + 1] = ("---@param %s%s %s"):format(name, optional, type_of(parameter))
        parameters[#parameters + 1] = name
      end
    end
  end
  if record and record.options and parameters[#parameters] ~= "..." then
    local fields = {}
    for _, parameter in ipairs(record.options) do fields[#fields + 1] = ("%s?: %s"):format(safe(parameter.name), type_of(parameter)) end
    lines[#lines + 1] = ("---@param options? { %s }"):format(table.concat(fields, ", "))
    parameters[#parameters + 1] = "options"
  end
  if not record then parameters = { "..." } end
  lines[#lines + 1] = "---@return " .. result_of(item, path)
  lines[#lines + 1] = ("function %s(%s) end"):format(path, table.concat(parameters, ", "))
end

local VALUE_TYPES = { number = "integer", string = "string", boolean = "boolean", table = "table" }

-- The public path of each class by its own name: Dataset -> flow.data.Dataset; of several names the one that help uses.
local function paths_of(items)
  local paths = {}
  for _, item in ipairs(items) do
    if item.kind == "class" and item.name:find("^flow%.") then paths[rawget(item.f, "name") or ""] = item.name end
  end
  return paths
end

-- A class of which functions are called without an object, as flow.data.Dataset.range: a table, which can be called if it makes objects.
local function put_class(item, lines)
  lines[#lines + 1] = ""
  lines[#lines + 1] = "---" .. (item.doc or "")
  if signature.of(item.f) then lines[#lines + 1] = "---@overload fun(...): " .. result_of(item, item.name) end
  lines[#lines + 1] = item.name .. " = {}"
end

-- The file for all items of the reference.
return function(items)
  local lines = { "---@meta flow", "", "---@class flow", "local flow = {}" }
  local modules, classes, order, fields = { flow = true }, {}, {}, {}
  local paths, statics, with_statics = paths_of(items), {}, {}
  local function module(path)
    if modules[path] then return end
    local above = path:match("^(.*)%.")
    if above then module(above) end
    modules[path] = true
    lines[#lines + 1] = path .. " = {}"
  end
  for _, item in ipairs(items) do
    local class, own = item.name:match("^(%u%w*)%.([%w_]+)$")      -- Dataset.range
    if class and paths[class] and not KEYWORDS[own] then
      statics[#statics + 1] = { item, paths[class] .. "." .. own }
      with_statics[paths[class]] = true
    end
    for _, name in ipairs(item.names) do
      local receiver, method = name:match("^(%l[%w_]*):([%w_]+)$")
      if receiver and receiver ~= "symbolic" and not KEYWORDS[method] then
        if not classes[receiver] then
          classes[receiver] = {}
          order[#order + 1] = receiver
        end
        table.insert(classes[receiver], { item, method })
      elseif item.kind == "field" then
        local owner, field = name:match("^(%l[%w_]*)%.([%w_]+)$")
        fields[owner] = fields[owner] or {}
        table.insert(fields[owner], ("---@field %s any %s"):format(field, item.doc or ""))
      elseif name == item.name and name:find("^flow%.") then
        module(name:match("^(.*)%."))
      end
    end
  end
  table.sort(order)
  for _, item in ipairs(items) do
    if item.kind == "constant" then
      lines[#lines + 1] = ""
      lines[#lines + 1] = "---" .. (item.doc or "")
      lines[#lines + 1] = "---@type " .. VALUE_TYPES[type(item.value)]
      lines[#lines + 1] = item.name .. " = nil"
    elseif with_statics[item.name] then
      put_class(item, lines)
    elseif item.name:find("^flow%.") then
      lines_of(item, item.name, lines)
    end
  end
  for _, entry in ipairs(statics) do lines_of(entry[1], entry[2], lines) end
  for _, receiver in ipairs(order) do
    lines[#lines + 1] = ""
    lines[#lines + 1] = "---@class flow." .. receiver
    for _, field in ipairs(fields[receiver] or {}) do lines[#lines + 1] = field end
    lines[#lines + 1] = ("local %s = {}"):format(receiver)
    table.sort(classes[receiver], function(a, b) return a[2] < b[2] end)
    for _, entry in ipairs(classes[receiver]) do
      local of_operation = entry[1].name:find("^flow%.") and 1 or 0
      lines_of(entry[1], receiver .. ":" .. entry[2], lines, of_operation)
    end
  end
  lines[#lines + 1] = ""
  lines[#lines + 1] = "return flow"
  return table.concat(lines, "\n") .. "\n"
end
