-- optimizers.lua: the optimizers of a ParameterServerStrategy: what a worker knows of them. A step leaves gradients and a rate; the
-- servers update (task.lua), and have the slots. store: of variables.lua.
--
--   optimizers.collect(store, optimizer, ...)   an update, while a step is traced: gradients and the rate are kept for push
--   optimizers.gather(store, ...)               what a step has left
--   optimizers.fetch(store)                     slots come here, to be saved
--   optimizers.install(store, optimizer)        of the chief, between steps: slots and counts that were restored here go there

local native = require "flow.ffi"
local errors = require "flow.errors"
local json = require "flow.json"
local object = require "flow.object"
local tensor = require "flow.tensor"
local variable = require "flow.tensor.variable"

local C, check, raise = native.C, native.check, errors.raise
local context = native.context
local WHAT = "ParameterServerStrategy"
local optimizers = {}
local out_tensor, out_update = native.out("flow_tensor"), native.out("flow_update")

local CLIPS = { "clipnorm", "clipvalue", "global_clipnorm" }

-- The optimizer as servers need it: gradients come clipped, and with a rate. They accumulate gradients of all workers.
local function config_of(optimizer)
  local config = json.decode(native.text(C.flow_optimizer_config, optimizer.handle))
  if config.config.use_ema == true then
    raise("%s: %s: use_ema is not supported by parameter servers; leave it out", WHAT, object.title(optimizer))
  end
  local accumulates = C.flow_optimizer_accumulation_steps(optimizer.handle) > 1
  for _, name in ipairs(CLIPS) do
    if accumulates and type(config.config[name]) == "number" then
      raise("%s: %s: %s with gradient_accumulation_steps is not supported by parameter servers: they add up gradients that workers have "
        .. "clipped; leave out one of both", WHAT, object.title(optimizer), name)
    end
    config.config[name] = nil
  end
  config.config.loss_scale_factor, config.config.learning_rate = nil, nil
  return json.encode(config)
end

-- Raises for an optimizer that the servers cannot run. scale: its loss scale, or nil.
local function check_supported(optimizer, scale)
  if scale ~= nil then
    raise("%s: %s: loss scales are not supported by parameter servers; train in float32 or mixed_bfloat16", WHAT, object.title(optimizer))
  end
  if C.flow_optimizer_class_index(optimizer.handle) < 0 then
    raise("%s: %s is written in Lua, but its updates run on the parameter servers, which have those of the library only", WHAT,
      object.title(optimizer))
  end
end

-- A variable on this task alone, on the device of `like`, of which the store makes no entry.
local function hidden(store, value, name, like)
  store._hides = true
  local ok, made = pcall(variable.Variable, value, { name = name, trainable = false })
  store._hides = false
  if not ok then error(made, 0) end
  native.try(C.flow_variable_to_device, context, made.handle, C.flow_tensor_device(native.pointer(like:value())))
  return made
end

-- What the store knows of an optimizer that has slots, whose first variable tells it from others of its name.
local function record_of(store, optimizer)
  for _, record in pairs(store._optimizers) do
    if record.optimizer == optimizer then return record end
  end
  local first = store:entry_of(C.flow_optimizer_variable(optimizer.handle, 0))
  local key = ("%s %d"):format(optimizer.name, first.parts[1].index)
  local record = { optimizer = optimizer, key = key, config = config_of(optimizer), gradients = {}, list = {}, numbers = false, known = 0,
                   rate = hidden(store, tensor.zeros({}, { device = "cpu" }), optimizer.name .. "/rate", first.variable), seen = 0,
                   fetched = 0, stamp = false, iterations = variable.wrap(C.flow_optimizer_iterations(optimizer.handle)) }
  record.seen = C.flow_variable_number(record.iterations.handle)
  store._optimizers[key] = record
  return record
end

---- steps --------------------------------------------------------------------------------------------------------------------------------

-- In place of the update: what push sends is kept.
function optimizers.collect(store, optimizer, scale, rate, gradients, handles, variables)
  check_supported(optimizer, scale)
  store:register(variables)
  for _, v in ipairs(variables) do
    if v.dtype ~= "float32" then
      raise("%s: the variable %q is %s; optimizers train float32 variables", object.title(optimizer), v.path, v.dtype)
    end
  end
  native.try(C.flow_update_begin, context, optimizer.handle, scale, rate, gradients, handles, #variables, out_update)
  local update = native.own(out_update, C.flow_update_release)
  local record, accumulates = record_of(store, optimizer), C.flow_optimizer_accumulation_steps(optimizer.handle) > 1
  for i, v in ipairs(variables) do
    if gradients[i - 1] ~= nil and not record.gradients[v] then
      record.gradients[v] = hidden(store, tensor.zeros(v.shape, { device = "cpu" }), v.path .. "/gradient", v)
      record.list[#record.list + 1] = v
    end
    if accumulates then out_tensor[0] = gradients[i - 1] ~= nil and C.flow_tensor_retain(gradients[i - 1]) or nil
    else check(C.flow_update_gradient(update, i - 1, out_tensor)) end
    if out_tensor[0] ~= nil then record.gradients[v]:assign(native.tensor(out_tensor[0])) end
  end
  record.rate:assign(native.tensor(C.flow_tensor_retain(C.flow_update_rate(update))))
  check(C.flow_update_end_elsewhere(native.gc(update, nil)))
end

-- Calls f(entry) for each variable that an optimizer has slots for.
local function each_entry(store, record, f)
  local handle = record.optimizer.handle
  for i = 0, C.flow_optimizer_variable_count(handle) - 1 do f(store:entry_of(C.flow_optimizer_variable(handle, i))) end
end

local function slot_of(record, entry, kind)
  local slot = C.flow_optimizer_slot_of(record.optimizer.handle, entry.variable.handle, kind)
  return slot ~= nil and variable.wrap(slot) or nil
end

-- Grows with every write to the slots here, which steps do not touch.
local function stamp_of(store, record)
  local stamp = 0
  each_entry(store, record, function(entry)
    for kind = 0, C.flow_optimizer_slot_kinds(record.optimizer.handle) - 1 do
      stamp = stamp + C.flow_variable_version(slot_of(record, entry, kind).handle)
    end
  end)
  return stamp
end

-- The number by which each server knows an optimizer, whose slots begin there as they begin here.
local function numbers_of(store, record)
  local handle = record.optimizer.handle
  local count = C.flow_optimizer_variable_count(handle)
  if record.numbers and record.known == count then return record.numbers end
  local parts, undecayed, numbers = {}, {}, {}
  for server = 1, store.links.count do parts[server], undecayed[server] = json.list {}, json.list {} end
  each_entry(store, record, function(entry)
    local decays = C.flow_optimizer_decay_of(handle, entry.variable.handle) ~= 0
    for _, part in ipairs(entry.parts) do
      table.insert(parts[part.server], part.index)
      if not decays then table.insert(undecayed[part.server], part.index) end
    end
  end)
  store.links:ask_all(function(server)
    return { is = "optimizer", key = record.key, config = record.config, parts = parts[server], undecayed = undecayed[server] }
  end, function(server, said) numbers[server] = said.number end)
  record.numbers, record.known = numbers, count
  record.stamp = record.stamp or stamp_of(store, record)
  return numbers
end

-- The gradients that the step has left, by entries: { numbers =, gradient = }; rates: of each server, by numbers.
function optimizers.gather(store)
  local gradients, rates = {}, {}
  for _, record in pairs(store._optimizers) do
    local made = C.flow_variable_number(record.iterations.handle) - record.seen
    if made > 1 then
      raise("%s: %s has made %d updates in one step; a step has one of each optimizer", WHAT, object.title(record.optimizer), made)
    end
    if made == 1 then
      local numbers, rate = numbers_of(store, record), C.flow_variable_number(record.rate.handle)
      for server, number in ipairs(numbers) do
        rates[server] = rates[server] or {}
        rates[server][tostring(number)] = rate
      end
      for _, v in ipairs(record.list) do
        gradients[store._known[v]] = { numbers = numbers, gradient = tensor.on_host(record.gradients[v]:value()) }
      end
    end
  end
  return gradients, rates
end

-- What servers have said of how often each optimizer was applied.
function optimizers.note(store, newest)
  store._updates = newest
  for key, record in pairs(store._optimizers) do
    if newest[key] then
      record.seen = newest[key]
      record.iterations:assign(tensor.tensor(record.seen, { dtype = "int64" }))
    end
  end
end

-- How often the servers have applied an optimizer of which no step was computed here, so that only its name is known; 0 where several
-- have that name.
function optimizers.updates_of(store, name)
  local found, count = 0, 0
  for key, updates in pairs(store._updates) do
    if key:match("^(.*) %d+$") == name then found, count = updates, count + 1 end
  end
  return count == 1 and found or 0
end

---- slots --------------------------------------------------------------------------------------------------------------------------------

-- Numbers that are kept once for all variables, of the optimizer here.
local function scalars_of(record)
  local handle, list = record.optimizer.handle, {}
  local first = C.flow_optimizer_variable_count(handle) * C.flow_optimizer_slot_kinds(handle)
  for i = first, C.flow_optimizer_slot_count(handle) - 1 do list[#list + 1] = variable.wrap(C.flow_optimizer_slot(handle, i)) end
  return list
end

-- Parts of one server for which an optimizer has slots, in the server's order.
local function parts_of(store, record, server)
  local has = {}
  each_entry(store, record, function(entry) has[entry] = true end)
  local list = {}
  for _, part in ipairs(store._parts[server]) do
    if has[part.entry] then list[#list + 1] = part end
  end
  return list
end

-- Calls f(kind, numbers, parts of each server), once for each slot that variables have, and once if they have none.
local function each_kind(store, record, f)
  local numbers, parts = numbers_of(store, record), {}
  for server = 1, store.links.count do parts[server] = parts_of(store, record, server) end
  for kind = 0, math.max(C.flow_optimizer_slot_kinds(record.optimizer.handle), 1) - 1 do f(kind, numbers, parts) end
end

-- A slot of the parts of one server, as a message. values: of this slot, by entries, which are kept there.
local function slots_message(record, kind, number, scalars, parts, values)
  local pieces, n = { at = native.array("const void *", #parts + 1), bytes = native.array("int64_t", #parts + 1) }, 0
  for _, part in ipairs(parts) do
    local slot = slot_of(record, part.entry, kind)
    if slot then
      values[part.entry] = values[part.entry] or tensor.on_host(slot:value()):contiguous()
      pieces.at[n], pieces.bytes[n] = native.cast("char *", native.data(values[part.entry])) + part.first, part.bytes
      n = n + 1
    end
  end
  pieces.n = n
  return { is = "slots", sets = true, number = number, kind = kind, iterations = record.seen, scalars = scalars }, pieces
end

-- Slots and counts as they are here, to each server that `takes` has, or to all.
local function send_slots(store, record, takes)
  local scalars = json.list {}
  for i, v in ipairs(scalars_of(record)) do scalars[i] = C.flow_variable_number(v.handle) end
  each_kind(store, record, function(kind, numbers, parts)
    local values = {}
    for server = 1, store.links.count do
      if not takes or takes[server] then
        store.links:ask(server, slots_message(record, kind, numbers[server], scalars, parts[server], values))
      end
    end
  end)
end

-- Servers are to be told again who the optimizers are.
function optimizers.forget(store)
  for _, record in pairs(store._optimizers) do record.numbers = false end
end

-- Of the chief: servers that are new get what it has last fetched.
function optimizers.renew(store, renewed)
  for _, record in pairs(store._optimizers) do send_slots(store, record, renewed) end
end

-- Of the chief, before others take part: what was restored goes to the servers. A server that has the optimizer already keeps what it has
-- unless slots or the number of updates were changed here.
function optimizers.install(store, optimizer)
  optimizer = rawget(optimizer, "inner_optimizer") or optimizer
  if C.flow_optimizer_class_index(optimizer.handle) < 0 or C.flow_optimizer_variable_count(optimizer.handle) == 0 then return end
  local record = record_of(store, optimizer)
  local calls = C.flow_variable_number(record.iterations.handle)
  if record.stamp and record.stamp == stamp_of(store, record) and calls == record.seen then return end
  record.seen = calls
  if record.stamp or calls > 0 then send_slots(store, record) else numbers_of(store, record) end
  record.fetched, record.stamp = calls, stamp_of(store, record)
end

-- Kind by kind, since all slots of a large model may not fit twice. Each server sends its parts of the slots one after the other;
-- scalars are the same on all of them, and the furthest count of updates counts.
local function fetch_slots(store, record)
  local scalars = scalars_of(record)
  each_kind(store, record, function(kind, numbers, parts)
    local values = {}
    store.links:ask_all(function(server) return { is = "slots", number = numbers[server], kind = kind } end,
      function(server, said, bytes, count)
        local offset = 0
        for _, part in ipairs(parts[server]) do
          local entry = part.entry
          if slot_of(record, entry, kind) then
            if offset + part.bytes > count then raise("%s: ps:%d has sent %.0f bytes of slots, too few", WHAT, server - 1, count) end
            values[entry] = values[entry] or tensor.zeros(entry.shape, { dtype = entry.dtype, device = "cpu" })
            native.copy(native.cast("char *", native.data(values[entry])) + part.first, bytes + offset, part.bytes)
            offset = offset + part.bytes
          end
        end
        for i, v in ipairs(scalars) do v:assign(said.scalars[i] or raise("%s: ps:%d has sent no scalar", WHAT, server - 1)) end
        record.fetched = math.max(record.fetched, said.iterations)
      end)
    for entry, value in pairs(values) do slot_of(record, entry, kind):assign(value) end
  end)
  record.stamp = stamp_of(store, record)
end

-- Slots as the servers have them, where they have changed.
function optimizers.fetch(store)
  for _, record in pairs(store._optimizers) do
    if record.numbers and record.fetched ~= record.seen then fetch_slots(store, record) end
  end
end

return optimizers
