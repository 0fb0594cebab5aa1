-- lua_map.lua: functions that ds:map and ds:filter call in Lua, for one element after the other, on the thread that reads: those that no
-- plan can hold, because they do more with texts, or with components whose sizes vary, than pass them on. They read files, decode pictures,
-- cut strings and look into tables, on values:
--
--   paths:map(function(path, label) return flow.image.resize(flow.image.decode_jpeg(flow.io.read_file(path)), { 64, 64 }), label end)
--
-- The dtypes of what they give, and the sizes, are those of the first elements; sizes that differ there may differ later, too.

local errors = require "flow.errors"
local native = require "flow.ffi"
local devices = require "flow.devices"
local scopes = require "flow.scopes"
local elements = require "flow.data.elements"
local Iterator = require "flow.data.iterator"
local structure = require "flow.data.structure"
local trace = require "flow.data.trace"
local tensor = require "flow.tensor"
local variable = require "flow.tensor.variable"
local strings = require "flow.tensor.strings"

local C, raise = native.C, errors.raise

local LOOKED_AT = 8      -- elements whose sizes are compared

-- f's results for an element, as components in the structure `own` (nil: as f gives them), and that structure.
-- Raises if it gives nothing, or more components than an element may have. f runs with tensors on the host.
local function results_of(what, dataset, f, components, own)
  local given, count = structure.pack(dataset._structure, components)
  local own_scope = scopes.own()
  local before = own_scope.maps_in_lua
  own_scope.maps_in_lua = true
  local returned = { pcall(devices.within, -1, f, unpack(given, 1, count)) }
  own_scope.maps_in_lua = before
  if not returned[1] then error(returned[2], 0) end
  table.remove(returned, 1)
  local only = #returned == 1 and returned[1]
  if type(only) == "table" and not getmetatable(only) and not structure.is_named(only) and not strings.are(only) then returned = only end
  if #returned == 0 then raise("%s: the function returned nothing", what) end
  local list, found = structure.flatten(what, returned, own)
  for i, value in ipairs(list) do
    if variable.is_variable(value) then list[i] = variable.read(value) end
    if type(value) == "number" or type(value) == "boolean" then list[i] = tensor.tensor(value) end
  end
  if #list > C.FLOW_MAX_COMPONENTS then
    raise("%s: the function returned %d values, at most %d are possible", what, #list, C.FLOW_MAX_COMPONENTS)
  end
  return list, found
end

-- Adds the sizes of further values to specs: those that differ become -1. is_known: sizes may not differ any more.
local function join(what, specs, values, is_known)
  local own = elements.specs_of_values(values)
  if #own ~= #specs then raise("%s: the function returned %d values for one element and %d for another", what, #specs, #own) end
  for i, spec in ipairs(own) do
    local known = specs[i]
    local fits = spec.dtype == known.dtype and #spec.shape == #known.shape
    for axis = 1, fits and #spec.shape or 0 do
      if known.shape[axis] >= 0 and known.shape[axis] ~= spec.shape[axis] then
        if is_known then fits = false else known.shape[axis] = -1 end
      end
    end
    if not fits then
      raise("%s: result %d of the function is %s; of the elements before it was %s: give results of one dtype and rank, and sizes that are "
        .. "always the same, as flow.image.resize makes them, or that vary from the first %d elements on", what, i,
        elements.spec_text(spec), elements.spec_text(known), LOOKED_AT)
    end
  end
end

-- Notes in `others`, { [result] = { [axis] = true } }, which sizes of an element's results differ from all unknown sizes of its components
-- along the same axis.
local function note_sizes(others, dataset, components, values)
  local given = elements.specs_of_values(components)
  for i, spec in ipairs(elements.specs_of_values(values)) do
    others[i] = others[i] or {}
    for axis, size in ipairs(spec.shape) do
      local is_same = false
      for k, known in ipairs(dataset._specs) do is_same = is_same or known.shape[axis] == -1 and given[k].shape[axis] == size end
      if not is_same then others[i][axis] = true end
    end
  end
end

-- What f gives of the first elements: specs, and the structure. A size that always is that of a component, where the component's is not
-- known, is not known, either: the last of the batches may be smaller.
local function look(what, dataset, f)
  local pass, specs, own, others = Iterator._open(dataset, true), nil, nil, {}
  for _ = 1, LOOKED_AT do
    local components = pass:_components()
    if not components then break end
    local values, found = results_of(what, dataset, f, components, own)
    note_sizes(others, dataset, components, values)
    if specs then join(what, specs, values) else specs, own = elements.specs_of_values(values), found end
  end
  pass:close()
  for i, spec in ipairs(specs or {}) do
    for axis in ipairs(spec.shape) do spec.shape[axis] = others[i][axis] and spec.shape[axis] or -1 end
  end
  if specs then return specs, own end
  -- There are no elements: the structure is learnt from empty texts and zeros, if the function takes them.
  local ok, values, found = pcall(results_of, what, dataset, f, elements.blank(dataset._specs))
  if ok then return elements.specs_of_values(values), found end
  return dataset._specs, dataset._structure
end

return function(Dataset, internal)
  -- The data set of what f gives of each element. problem: why f cannot be traced.
  function internal.map_in_lua(dataset, f, problem)
    local ok, specs, own = pcall(look, "map", dataset, f)
    if not ok then
      if type(specs) ~= "string" then error(specs, 0) end
      local at, text = tostring(specs):match "^([^\n]-:%d+: )(.*)$"
      text = (text or tostring(specs)):gsub("^map: ", "")
      error(("%smap: %s; the function was called with values, since it cannot be traced: %s"):format(at or "", text,
        (tostring(problem):gsub("^.-the function cannot be traced: ", ""))), 0)
    end
    return internal.transform({ dataset }, specs, own, dataset:cardinality(), function(pull, give)
      for components in pull do
        local values = results_of("map", dataset, f, components, own)
        join("map", specs, values, true)
        give(values)
      end
    end)
  end

  -- Whether f gives these numbers, by the numbers of its results, for the first elements, too. What fails there is told by the pass.
  function internal.are_constant(dataset, f, numbers)
    local pass, same = Iterator._open(dataset, true), true
    for _ = 1, LOOKED_AT do
      local components = same and pass:_components()
      if not components then break end
      local ok, values = pcall(results_of, "map", dataset, f, components)
      for i, number in pairs(ok and numbers or {}) do
        local value = values[i]
        if native.is_tensor(value) and #value.shape == 0 then value = value:item() end
        same = same and value == number
      end
    end
    pass:close()
    return same
  end

  -- What f(element) says, true or false, of an element's components.
  local function is_kept(what, dataset, f, components)
    local kept = results_of(what, dataset, f, components)[1]
    if kept.dtype ~= "bool" or #kept.shape > 0 then
      raise("%s: its function gives true or false, got %s", what, errors.describe(kept))
    end
    return kept:item()
  end

  -- The data set of the elements for which f gives true; with `stops` only those before the first element for which it does not.
  function internal.filter_in_lua(what, dataset, f, stops)
    return internal.transform({ dataset }, dataset._specs, dataset._structure, -2, function(pull, give)
      for components in pull do
        if is_kept(what, dataset, f, components) then give(components) elseif stops then return end
      end
    end)
  end

  -- The traced form of a function that says true or false of an element, as native.own has it; nil: it has to be called in Lua.
  function internal.predicate(dataset, f)
    local own_scopes = scopes.own()
    own_scopes.needs_values = nil
    local ok, handle = pcall(trace.filter_function, f, dataset._specs, dataset._structure)
    if ok then return handle end
    if not own_scopes.needs_values and not internal.has_loose(dataset._specs) then error(handle, 0) end
  end

  -- Whether there is something in these components with which f may do what no plan holds: texts, sizes that vary, and batches that may be
  -- smaller at the end, of which a plan cannot cut or join rows. Then f is called in Lua where it cannot be traced.
  function internal.has_loose(specs)
    for _, spec in ipairs(specs) do
      if spec.dtype == "string" then return true end
      for _, size in ipairs(spec.shape) do
        if size < 0 then return true end
      end
    end
    return false
  end

  return Dataset
end
