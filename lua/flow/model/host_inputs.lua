-- host_inputs.lua: models whose first layers prepare data on the host (layers/host_layer.lua), such as TextVectorization on strings. Plans
-- do not contain these layers: they run before, eagerly on arrays and as steps of the pipeline on data sets, and their outputs are the
-- inputs of the model's plans.
--
-- model._host = { nodes = calls of such layers in order, fed = symbolic tensors that the plans take, is_host = { [node] = true } }, or nil.
--
-- Two ways lead here: prepare() for arrays, and map() for data sets, whose functions then run on the host. While a prepared model is
-- called, scopes.own().fed_model says that its inputs are those of the plans already.
--
-- A model inside of another one may have such layers, too: it is one call of the graph, as files and summaries show it, but what runs are
-- the calls inside of it: expand(). inline() calls them on symbolic tensors, for a call() that is recorded, or runs again
-- (host_replay.lua).

local errors = require "flow.errors"
local native = require "flow.ffi"
local object = require "flow.object"
local ops = require "flow.tensor.ops"
local tensor = require "flow.tensor"
local strings = require "flow.tensor.strings"
local host_calls = require "flow.tensor.host_calls"
local symbolic = require "flow.layers.symbolic"
local several = require "flow.layers.several"
local scopes = require "flow.scopes"

local raise = errors.raise
local host_inputs = {}

-- Whether a node makes what the model is given: an input of a model may be the output of a layer, as in
-- flow.Model(space:get_encoded_features(), y).
local function makes_input(node, inputs)
  for _, input in ipairs(inputs) do
    for _, output in ipairs(node.outputs) do
      if output == input then return true end
    end
  end
  return false
end

-- The nodes that run before the plans: those on the host, and what they need. Training does not reach these: none has weights.
local function nodes_before(model, order, inputs)
  local before, wanted = {}, {}
  -- Backwards, so that a node comes after all that need its outputs. wanted: the host layer for which a tensor is needed.
  for i = #order, 1, -1 do
    local node, on_host = order[i], order[i].layer._on_host and not makes_input(order[i], inputs)
    local by = false      -- the host layer that needs an output of this node
    for _, output in ipairs(node.outputs) do by = by or wanted[output] end
    if by and not on_host and #node.layer.variables > 0 then
      raise("%s: %s prepares data on the host, so that it is called on inputs of the model, or on what layers without weights make of "
        .. "them; %s has weights", object.title(model), object.title(by), object.title(node.layer))
    end
    if #node.inputs > 0 and (on_host or by) and not makes_input(node, inputs) then
      before[node] = true
      for _, input in ipairs(node.inputs) do wanted[input] = on_host and node.layer or by end
    end
  end
  return before
end

-- The value of _host for a graph of calls in running order, or nil if plans can contain all of it.
function host_inputs.of_graph(model, order, inputs, outputs)
  local before = nodes_before(model, order, inputs)
  local host, needed = { nodes = {}, fed = {}, is_host = {} }, {}
  for _, node in ipairs(order) do
    if before[node] then
      host.nodes[#host.nodes + 1], host.is_host[node] = node, true
    elseif #node.inputs > 0 then
      for _, input in ipairs(node.inputs) do needed[input] = true end
    end
  end
  if #host.nodes == 0 then return nil end
  for _, output in ipairs(outputs) do needed[output] = true end
  local function feed(t)
    if not needed[t] then return end
    if t.dtype == "string" then raise("%s: \"%s\" holds strings, which no plan takes", object.title(model), t.name) end
    host.fed[#host.fed + 1] = t
  end
  for _, input in ipairs(inputs) do feed(input) end
  for _, node in ipairs(host.nodes) do
    for _, output in ipairs(node.outputs) do feed(output) end
  end
  return host
end

-- A node with other inputs, and outputs of its own where `outputs` are given. options: of the call that contains it, or nil.
local function placed_node(node, inputs, outputs, options)
  local made = {}
  for key, value in pairs(node) do made[key] = value end
  made.inputs, made.outputs = inputs, outputs or node.outputs
  if options and options.training ~= nil then made.options = { training = options.training } end
  return made
end

-- The calls that run for a graph of calls in running order: those inside of models that prepare data in place of the calls of these models.
-- Also returns the outputs of the graph among what they make.
function host_inputs.expand(order, outputs)
  local expanded, stands_for = {}, {}      -- stands_for[t]: what is computed in its place
  local function placed(list)
    local result = {}
    for i, t in ipairs(list) do result[i] = stands_for[t] or t end
    return result
  end
  -- Symbolic tensors of their own for the outputs of a call inside: the model may be called several times.
  local function own_outputs(node, inside)
    local result = {}
    for i, t in ipairs(node.outputs) do
      result[i] = object.new(object.class_of(t), {})
      for key, value in pairs(t) do rawset(result[i], key, value) end
      inside[t] = result[i]
    end
    return result
  end
  local is_expanded = false
  for _, node in ipairs(order) do
    local model, inputs = node.layer, placed(node.inputs)
    if #inputs > 0 and rawget(model, "_host") and rawget(model, "_run_order") then
      local inside = {}
      for i, input in ipairs(model.inputs) do inside[input] = inputs[i] end
      for _, inner in ipairs(model._run_order) do
        if not inside[inner.outputs[1]] then
          local given = {}
          for i, input in ipairs(inner.inputs) do given[i] = inside[input] end
          expanded[#expanded + 1] = placed_node(inner, given, own_outputs(inner, inside), node.options)
        end
      end
      for i, output in ipairs(model._run_outputs) do stands_for[node.outputs[i]] = inside[output] end
      is_expanded = true
    else
      expanded[#expanded + 1] = is_expanded and placed_node(node, inputs) or node
    end
  end
  return expanded, is_expanded and placed(outputs) or outputs
end

-- The symbolic tensors that a model's plans take.
function host_inputs.fed(model)
  local host = rawget(model, "_host")
  return host and host.fed or rawget(model, "inputs")
end

-- The symbolic tensors that data for a model is for: of a graph, or of a model that records its own call (host_replay.lua).
local function inputs_of(model)
  return rawget(model, "inputs") or rawget(model, "_host").inputs
end

-- Calls f; meanwhile calls of the model take the inputs of its plans.
function host_inputs.within(model, f, ...)
  local own = scopes.own()
  local before = own.fed_model
  own.fed_model = model
  local function finish(ok, ...)
    own.fed_model = before
    if not ok then error((...), 0) end
    return ...
  end
  return finish(pcall(f, ...))
end

-- Whether a model is called on data for its Inputs, which must be prepared.
function host_inputs.are_raw(model, inputs)
  if not rawget(model, "_host") or scopes.own().fed_model == model then return false end
  local first = inputs
  if type(inputs) == "table" and not getmetatable(inputs) then first = inputs[1] end
  return not (native.is_tensor(first) and tensor.is_symbolic(first))
end

---- preparing ------------------------------------------------------------------------------------------------------------

-- A value with the axes of the Input: a last axis of size 1 is added by more() or removed by less().
local function with_rank(rank, wanted, value, more, less)
  if rank == wanted - 1 then return more(value) end
  if rank == wanted + 1 then return less(value) end
  return value
end

-- Calls the layer of a node on values by symbolic tensor, to which it adds those of its outputs.
local function call_node(node, values, arguments)
  local result
  if node.call then result = several.gathered(node.layer(unpack(several.unpacked(several.replace(node.call, arguments), nil))))
  else result = several.gathered(node.layer(node.single and arguments[1] or arguments)) end
  for i, output in ipairs(node.outputs) do values[output] = #node.outputs == 1 and result or result[i] end
end

-- Runs the nodes before the plans on values by Input; returns the inputs of the plans.
local function run(host, values)
  for _, node in ipairs(host.nodes) do
    local arguments = {}
    for i, input in ipairs(node.inputs) do
      arguments[i] = node.layer._on_host and values[input] or host_calls.numbers(values[input])
    end
    call_node(node, values, arguments)
  end
  local list = {}
  for i, t in ipairs(host.fed) do list[i] = values[t] end
  return list
end

-- Reads one value for each Input from an argument: a value, a list of them, or values by name.
local function values_of(model, given)
  local inputs = inputs_of(model)
  if #inputs == 1 then
    local first = type(given) == "table" and not getmetatable(given) and given[1]
    local is_list = native.is_tensor(first) or type(first) == "table" and getmetatable(first)
    return { is_list and first or given }
  end
  if type(given) ~= "table" or getmetatable(given) or #given ~= #inputs then
    raise("%s: expected a list of %d inputs, got %s", object.title(model), #inputs,
      type(given) == "table" and not getmetatable(given) and #given .. " entries" or errors.describe(given))
  end
  return given
end

-- A value for one Input in its dtype and with its axes; raises if it does not fit. Strings become tensors of strings. What stands for a
-- component of strings while ds:map is traced stays: the layers are steps of the pipeline then.
local function fit(model, value, wanted)
  local what = ("%s: input \"%s\""):format(object.title(model), wanted.name)
  if wanted.dtype == "string" and host_calls.is_text(value) then
    local _, spec = host_calls.component(value)
    if #spec.shape == #wanted.shape then return value end
    if #spec.shape == #wanted.shape - 1 and wanted.shape[#wanted.shape] == 1 then return host_calls.column(value) end
    raise("%s has shape %s, expected %s: call batch() before map()", what, symbolic.shape_text(spec.shape),
      symbolic.shape_text(wanted.shape))
  end
  if wanted.dtype == "string" then
    if not strings.are(value) then raise("%s takes strings, got %s", what, errors.describe(value)) end
    value = type(value) == "string" and strings.of({ value }, { 1 }) or strings.tensor(what, value)
  else
    if strings.are(value) then raise("%s takes numbers of %s, got strings", what, wanted.dtype) end
    value = ops.operand(value, nil, what)
    if value.dtype ~= wanted.dtype then value = value:to(wanted.dtype) end
  end
  value = with_rank(#value.shape, #wanted.shape, value, function(x) return x:expand_dims(-1) end, function(x)
    return x.shape[#x.shape] == 1 and x:squeeze(-1) or x
  end)
  local shape, fits = value.shape, #value.shape == #wanted.shape
  for axis = 2, #wanted.shape do fits = fits and (wanted.shape[axis] < 0 or shape[axis] == wanted.shape[axis]) end
  if fits then return value end
  local plain = {}
  for axis = 1, #shape do plain[axis] = shape[axis] end
  raise("%s has shape %s, expected %s", what, symbolic.shape_text(plain), symbolic.shape_text(wanted.shape))
end

-- Makes the inputs of the plans, a list of tensors on the host, from data for the Inputs.
function host_inputs.prepare(model, given)
  local values = {}
  local inputs = inputs_of(model)
  for i, value in ipairs(values_of(model, given)) do values[inputs[i]] = fit(model, value, inputs[i]) end
  return run(rawget(model, "_host"), values)
end

-- A data set whose first components, data for the Inputs, are replaced by the inputs of the plans.
function host_inputs.map(model, what, dataset)
  model:_meet(dataset._specs[1])
  local host = rawget(model, "_host")
  if not host then return dataset end
  local specs, inputs = dataset._specs, inputs_of(model)
  if #specs < #inputs then
    raise("%s: an element of the dataset has %d components, %s has %d inputs", what, #specs, object.title(model), #inputs)
  end
  for i, input in ipairs(inputs) do
    if (specs[i].dtype == "string") ~= (input.dtype == "string") then
      raise("%s: component %d of the dataset is %s, input \"%s\" takes %s", what, i, specs[i].dtype, input.name, input.dtype)
    end
    if #specs[i].shape == 0 then raise("%s: component %d of the dataset is one value, not a batch: call batch() first", what, i) end
  end
  return dataset:map(function(...)
    local given, values = { ... }, {}
    for i, input in ipairs(inputs) do
      values[input] = with_rank(#specs[i].shape, #input.shape, given[i], host_calls.column, function(x) return x end)
    end
    local list = run(host, values)
    for i, value in ipairs(list) do list[i] = host_calls.plain(value) end
    for i = #inputs + 1, #given do list[#list + 1] = given[i] end
    return unpack(list)
  end)
end

-- Connects a Sequential model whose first layer prepares data on the host to the first data that it meets: a value, or { shape =, dtype = }
-- of batches.
function host_inputs.meet(model, first, connect)
  local layer = model._children[1]
  if model._built or not layer or not layer._on_host then return end
  local of_list = type(first) == "table" and not getmetatable(first) and first[1]
  if native.is_tensor(of_list) or strings.is(of_list) then first = of_list end
  if type(first) ~= "table" or getmetatable(first) or not first.dtype then
    local is_text = strings.are(first)
    if is_text then first = strings.tensor("Sequential", type(first) == "string" and { first } or first)
    else first = ops.operand(first, nil, "Sequential") end
  end
  rawset(model, "_input", require("flow.layers").Input({ unpack(first.shape, 2) }, { dtype = first.dtype }))
  connect(model)
end

-- Calls the layers of a model on symbolic tensors one by one, so that a model that contains it consists of these calls.
function host_inputs.inline(model, given)
  local values = {}
  for i, value in ipairs(symbolic.is(given) and { given } or given) do values[model.inputs[i]] = value end
  for _, node in ipairs(model._order) do
    if not values[node.outputs[1]] then
      local arguments = {}
      for i, input in ipairs(node.inputs) do
        arguments[i] = values[input] or raise("%s: expected %d inputs", object.title(model), #model.inputs)
      end
      call_node(node, values, arguments)
    end
  end
  local results = {}
  for i, output in ipairs(model.outputs) do results[i] = values[output] end
  return #results == 1 and results[1] or results
end

return host_inputs
