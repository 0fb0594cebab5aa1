-- weights.lua: where Keras keeps the variables of a model in its file (keras.src.saving.saving_lib), for writing and reading.
--
--   vars/<i>                               the model's own, of a class written in Lua; the note "name" is the model's name
--   layers/<class>[_n]/vars/<i>            variable i of a layer; <class> is the class in snake case, numbered in the model's order
--   layers/<class>/<field>/vars/<i>        of a layer in a field of a layer written in Lua; lists: <field>/<class>[_n]
--   optimizer/vars/<i>                     iterations, learning rate, slots; before them the four variables of a loss scale
--   optimizer/inner_optimizer/vars/<i>     where there is a loss scale, those of the optimizer inside once more
--   optimizer/inner_optimizer/beside/vars/<i>     its state that Keras does not write there, and does not look for
--
-- A walk calls visit(path, name, variables, layer, hidden) for every object, with the variables that are its own; hidden: the layer is
-- inside of a script's class, which config.json does not look into.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local layers = require "flow.layers"
local Layer = require "flow.layers.layer"
local models = require "flow.model"
local operations = require "flow.saving.operations"
local contents = require "flow.layers.classes.contents"
local hooks = require "flow.layers.classes.saving_hooks"
local lora = require "flow.layers.kernels.lora"
local quantized_files = require "flow.saving.quantized_files"
local quantization = require "flow.layers.quantization"
local byte_kernels = require "flow.layers.kernels.byte_kernels"
local variable = require "flow.tensor.variable"
local log = require "flow.log"

local C, raise = native.C, errors.raise
local weights = {}

local INNER, BESIDE = "optimizer/inner_optimizer/vars", "optimizer/inner_optimizer/beside/vars"

---- the walk ------------------------------------------------------------------------------------------------------------------------

local group_path, group_name, group_first = native.array("const char *", 1), native.array("const char *", 1), native.array("int", 1)

local function join(path, name)
  return path == "" and name or path .. "/" .. name
end

local walk

-- The layers of a list with their places in the file, which the library names, added to `places`.
local function add_list(places, path, list)
  local found, class_names, out = {}, {}, native.out("flow_group_names")
  for _, layer in ipairs(list) do
    if not operations.is(layer) then
      found[#found + 1], class_names[#class_names + 1] = layer, layer.class_name
    end
  end
  local pointers = native.array("const char *", #class_names)
  for i, name in ipairs(class_names) do pointers[i - 1] = name end
  native.keep(class_names)
  native.try(C.flow_group_names_new, pointers, #class_names, out)
  local names = native.own(out, C.flow_group_names_release)
  for i, layer in ipairs(found) do places[#places + 1] = { layer, join(path, native.string(C.flow_group_names_at(names, i - 1))) } end
  native.close(names, C.flow_group_names_release)
end

-- The layers of a model as they are in its file: those of a Sequential come without the input.
local function listed(model)
  return rawget(model, "_graph_layers") and not object.is(model, models.Sequential) and model._graph_layers or model._children
end

-- The fields of a layer written in Lua, those that begin with _ last. list: of the layers of a model that is not a graph, which has it
-- among its fields, as "layers": Keras keeps a layer in the first of its places.
local function add_fields(places, path, layer, list)
  local keys = {}      -- as they are: self[1] = layer is a field, too
  for key in pairs(layer._assignments) do keys[#keys + 1] = key end
  if list and layer._assignments.layers == nil then keys[#keys + 1] = "layers" end
  local function rank(key) return (tostring(key):gsub("^_", "~_")) end
  table.sort(keys, function(one, other) return rank(one) < rank(other) end)
  for _, key in ipairs(keys) do
    local value, place = layer._assignments[key], join(path, tostring(key))
    if value == nil then value = list end
    if object.is(value, Layer) then places[#places + 1] = { value, place }
    elseif type(value) == "table" and not getmetatable(value) then add_list(places, place, contents.objects(value, Layer)) end
  end
end

-- Walks through layers at the first of their places, or the first that the file has.
local function walk_places(places, visit, seen, file_has, hidden)
  local chosen = {}
  for _, place in ipairs(places) do
    local layer, path = place[1], place[2]
    if not chosen[layer] or file_has and not file_has(chosen[layer]) and file_has(path) then chosen[layer] = path end
  end
  for _, place in ipairs(places) do walk(chosen[place[1]], place[1], visit, seen, file_has, hidden) end
end

-- Visits a layer's own variables, then those of its parts, such as "query_dense" of MultiHeadAttention.
local function walk_groups(path, layer, visit, hidden)
  if hooks.stores(layer) then return visit(join(path, "vars"), layer.name, hooks.own_variables(layer), layer, hidden) end
  local handle, group = layer._handle or nil, 0
  local count = C.flow_layer_group(handle, group, group_path, group_name, group_first)
  while count >= 0 do
    local group_of, name, list = native.string(group_path[0]), layer.name, {}
    for i = group_first[0], group_first[0] + count - 1 do list[#list + 1] = variable.wrap(C.flow_layer_variable(handle, i)) end
    if group > 0 then name = native.string(group_name[0])
    else
      for _, trainable in ipairs { true, false } do
        for _, v in ipairs(layer._own) do
          if v.trainable == trainable and not lora.is_factor(layer, v) then list[#list + 1] = v end
        end
      end
    end
    visit(join(path, group_of), name, list, layer, hidden)
    group = group + 1
    count = C.flow_layer_group(handle, group, group_path, group_name, group_first)
  end
end

-- file_has(path): of a file that is read, whether anything is stored there.
function walk(path, layer, visit, seen, file_has, hidden)
  if seen[layer] then return end      -- a layer that is used twice is stored where it is met first
  seen[layer] = true
  if object.is(layer, models.Model) then visit(join(path, "vars"), layer.name, hooks.own_variables(layer), layer)
  else walk_groups(path, layer, visit, hidden) end
  local places = {}
  local is_graph = object.is(layer, models.Sequential) or object.is(layer, models.Functional)
  if is_graph then add_list(places, join(path, "layers"), listed(layer)) end
  if (not layer._handle or rawget(layer, "_extended")) and not object.is(layer, layers.InputLayer) then
    add_fields(places, path, layer, object.is(layer, models.Model) and not is_graph and layer._children)
  end
  hidden = hidden or not is_graph and layers._in_lua(layer.class_name) ~= object.class_of(layer)
  walk_places(places, visit, seen, file_has, hidden)
end

-- The optimizer of compile, or nil.
local function optimizer_of(model)
  local compiled = rawget(model, "_compiled")
  return compiled and compiled.optimizer
end

-- The first `count` entries of a list.
local function first(list, count)
  local part = {}
  for i = 1, count do part[i] = list[i] end
  return part
end

-- The variables of an optimizer inside a loss scale that Keras' files have, and those that they lack though they are state: there Keras
-- does not track what is no slot, and begins Nadam's u_product anew. What Adafactor has for variables without rows is in neither list.
local function split_inner(optimizer)
  local tracked, beside, unused = {}, {}, rawget(optimizer, "_unused") or {}
  for _, v in ipairs(optimizer.variables) do
    local list = v.path:find "/u_product$" and beside or tracked
    if not unused[v] then list[#list + 1] = v end
  end
  return tracked, beside
end

---- writing --------------------------------------------------------------------------------------------------------------------------

-- Whether a layer's kernels are written as bytes, as by Keras: in a file of weights wherever it computes in int8 by rows, in a .keras file
-- where its entry says so.
local function in_bytes(layer, whole, hidden)
  if not layer or layer._on_host or not layer._handle then return false end
  return quantization.said(layer, whole) and not (hidden and not whole)
end

-- Adds every variable of the model, and of its optimizer unless that is not wanted, to a tensor_file.writer. whole: there is no
-- config.json.
function weights.add(writer, model, with_optimizer, whole)
  local function visit(path, name, variables, layer, hidden)
    writer:group(path)
    writer:note(path, "name", name)
    local bytes_too = in_bytes(layer, whole, hidden)
    if layer and hooks.stores(layer) then
      for _, entry in ipairs(hooks.stored(layer, bytes_too)) do writer:add(path .. "/" .. entry.name, entry.value) end
      return
    end
    local function value_of(v) return layer and lora.stored(layer, v) or v end
    for i, value in ipairs(bytes_too and byte_kernels.group(layer, variables, lora.stored_in_bytes(layer)) or variables) do
      writer:add(("%s/%d"):format(path, i - 1), bytes_too and value or value_of(value))
    end
    for key, value in pairs(layer and layer._on_host and layer:_named_tensors() or {}) do writer:add(path .. "/" .. key, value) end
  end
  walk("", model, visit, {})
  local optimizer = with_optimizer and optimizer_of(model)
  local inner = optimizer and rawget(optimizer, "inner_optimizer")
  if not optimizer then return end
  if not inner then return visit("optimizer/vars", optimizer.name, optimizer.variables) end
  local tracked, beside = split_inner(inner)
  local own = first(optimizer.variables, #optimizer.variables - #inner.variables)
  for _, v in ipairs(tracked) do own[#own + 1] = v end
  visit("optimizer/vars", optimizer.name, own)
  visit(INNER, inner.name, tracked)      -- once more, as Keras writes them
  if beside[1] then visit(BESIDE, inner.name, beside) end
end

---- reading ---------------------------------------------------------------------------------------------------------------------------

local function shape_text(shape)
  return "{" .. table.concat(shape, ", ") .. "}"
end

-- The number of tensors 0, 1, ... in a group; tensors with other names do not count.
local function stored_count(file, path)
  local count = 0
  while file:find(path .. "/" .. count) do count = count + 1 end
  return count
end

-- Checks a group, or its first `count` tensors, against the variables that are to be read from it and appends { position, variable } to
-- the list; of bytes with scales, { position, variable, scale = position, layer }.
local function match(file, path, who, variables, list, count, layer)
  count = count or stored_count(file, path)
  local places = layer and quantized_files.has(file, path, count, variables) and byte_kernels.places(variables)
  if places then count = #variables end
  if count ~= #variables then
    raise("%s: %s expected %d variables, but the file has %d (%s)", file.path, who, #variables, count, path)
  end
  for i, v in ipairs(variables) do
    local position = file:find(("%s/%d"):format(path, places and places[i][1] or i - 1))
    local scale = places and places[i][2] and file:find(("%s/%d"):format(path, places[i][2])) or nil
    local shape = file:shape(position)
    if shape_text(shape) ~= shape_text(v.shape) then
      raise("%s: %s: variable \"%s\" has shape %s, the file has %s", file.path, who, v.path, shape_text(v.shape), shape_text(shape))
    end
    list[#list + 1] = { position = position, variable = v, scale = scale, layer = scale and layer }
  end
end

-- Reads a list of { position, variable }: into the variables themselves where a model that is half read is acceptable; else all of them are
-- read first.
function weights.assign(file, list, in_place)
  local waiting = {}
  for i, item in ipairs(list) do
    if item.scale then
      quantized_files.quantize(item.layer)
      waiting[i] = quantized_files.read(file, item.layer, item.variable, item.position, item.scale)
    elseif in_place and file:dtype(item.position) == item.variable.dtype then
      file:read_into(item.position, item.variable)
    else
      waiting[i] = file:read(item.position)
      if waiting[i].dtype ~= item.variable.dtype then waiting[i] = waiting[i]:to(item.variable.dtype) end
    end
  end
  for i, item in ipairs(list) do
    if waiting[i] then item.variable:assign(waiting[i]) end
  end
end

-- The same, but what does not fit is left out with a warning.
local function try_match(file, path, who, variables, list, count)
  local found = {}
  local ok, problem = pcall(match, file, path, who, variables, found, count)
  if not ok then
    log.warning("%s; it stays unchanged", (tostring(problem):gsub("^[^\n]-:%d+: ", "")))
    return
  end
  for _, item in ipairs(found) do list[#list + 1] = item end
end

-- The loss scale's own variables are before the inner optimizer's. Keras makes two of them at the first step only.
local function match_scale(file, optimizer, list)
  local own = stored_count(file, "optimizer/vars") - stored_count(file, INNER)
  local variables = first(optimizer.variables, #optimizer.variables - #optimizer.inner_optimizer.variables)
  if own == #variables then try_match(file, "optimizer/vars", "the loss scale", variables, list, own) end
end

-- With a loss scale or without one, the file and the model may differ in that.
local function match_optimizer(file, model, list)
  local optimizer = optimizer_of(model)
  if not optimizer then return end
  local path = stored_count(file, INNER) > 0 and INNER or "optimizer/vars"
  local inner = rawget(optimizer, "inner_optimizer")
  if inner and path == INNER then match_scale(file, optimizer, list) end
  optimizer = inner or optimizer
  local count = stored_count(file, path)
  if count == 0 then return end
  if count > #optimizer.variables then optimizer:build(model.trainable_variables) end
  local variables = optimizer.variables
  if path == INNER and count ~= #variables then
    local beside
    variables, beside = split_inner(optimizer)
    if stored_count(file, BESIDE) > 0 then try_match(file, BESIDE, "the optimizer", beside, list) end
  end
  if count < #variables then variables = first(variables, count) end      -- saved before the first step: the slots are zero
  try_match(file, path, "the optimizer", variables, list)
end

-- Whether a file has a tensor below a path, as a function of it.
local function paths_of(file)
  local found
  return function(path)
    if not found then
      found = {}
      for i = 1, file.count do
        local name = file:name_of(i)
        for position in name:gmatch "()/" do found[name:sub(1, position - 1)] = true end
      end
    end
    return found[path] == true
  end
end

-- The tensors of a group by their names.
local function store_of(file, path)
  local store = {}
  for i = 1, file.count do
    local name = file:name_of(i)
    if name:sub(1, #path + 1) == path .. "/" and not name:find("/", #path + 2, true) then store[name:sub(#path + 2)] = file:read(name) end
  end
  return store
end

-- Reads what weights.add wrote. in_place: the model is thrown away when reading fails. skip: layers that do not fit are left.
function weights.read(file, model, in_place, skip)
  local list, file_has = {}, paths_of(file)
  local by_themselves = {}
  local read = {}
  walk("", model, function(path, _, variables, layer)
    read[#read + 1] = layer
    if hooks.stores(layer) then by_themselves[#by_themselves + 1] = { path, layer }
    elseif skip then try_match(file, path, object.title(layer), variables, list)
    else match(file, path, object.title(layer), variables, list, nil, layer) end
  end, {}, file_has)
  match_optimizer(file, model, list)
  weights.assign(file, list, in_place)
  for _, layer in ipairs(read) do lora.begin_again(layer) end
  for _, one in ipairs(by_themselves) do one[2]:load_own_variables(store_of(file, one[1])) end
  for path, layer in pairs(weights.of_host_layers(model, file_has)) do
    layer:_read_tensors(function(name)
      local position = file:find(path .. "/vars/" .. name)
      return position and file:read(position)
    end)
  end
end

-- The layers that keep more than variables, such as a vocabulary, by their paths in the file.
function weights.of_host_layers(model, file_has)
  local list = {}
  walk("", model, function(path, _, _, layer)
    if layer._on_host then list[path:match "^(.*)/vars$"] = layer end
  end, {}, file_has)
  return list
end

-- Those of scripts' classes that write files of their own, by their paths; "" is the model.
function weights.with_assets(model, file_has)
  local list = {}
  walk("", model, function(path, _, _, layer)
    if hooks.of(layer, "save_assets") or hooks.of(layer, "load_assets") then list[path:match "^(.-)/?vars$" or path] = layer end
  end, {}, file_has)
  return list
end

return weights
