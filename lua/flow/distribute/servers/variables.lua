-- variables.lua: the variables of a ParameterServerStrategy: copies here, the truth on the servers. Each variable is cut into parts
-- along its first axis (partitioners.lua), which go to the servers in turns, in the order in which variables are made, as in TensorFlow.
-- One with a constraint stays whole: norms need all of it.
--
--   store:register(list)       variables that servers are to keep, in an order that is the same in all tasks
--   store:collect(optimizer, ...)   an update, while a step is traced: gradients and the rate are kept for push (optimizers.lua)
--   store:push()               sends what a step has changed, and takes the values of all variables, which others have changed, too
--   store:pull()               takes them
--   store:publish(optimizers)  of the chief, between steps: what it has assigned, and restored, goes to the servers
--   store:fetch()              of the chief: the optimizers' slots come here
--
-- What an optimizer updates changes by its gradients, on the servers. What a step assigns otherwise (moving statistics, metrics, counters)
-- is sent as the difference to what was there, which the servers add. Variables of other dtypes stay on each worker.

local native = require "flow.ffi"
local errors = require "flow.errors"
local json = require "flow.json"
local log = require "flow.log"
local tensor = require "flow.tensor"
local optimizers = require "flow.distribute.servers.optimizers"
local partitioners = require "flow.distribute.partitioners"

local C, check, raise = native.C, native.check, errors.raise
local context = native.context
local WHAT = "ParameterServerStrategy"
local AT_ONCE, NAMES_AT_ONCE = 100, 65536      -- parts in a message, and bytes of their names, above which it has no further part
local LEAST_SHARED = 65536                     -- bytes that are worth memory of both processes
local KEPT = { float32 = 4, float64 = 8, int32 = 4, int64 = 8 }      -- bytes of an element

local Store = {}
Store.__index = Store
local server_variables = {}
local out_tensor = native.out("flow_tensor")

-- An entry is a variable that the servers keep: { variable =, name =, shape =, size =, dtype =, width = bytes of an element, constraint = a
-- config or false, parts = in order, base = what the servers had when values last came, from which differences count }. A part is
-- { entry =, first = offset in bytes, bytes =, shape =, name =, server = from 1, index = among the server's parts, from 1 }. _known:
-- entries by variable; _parts: parts by server; _made: parts so far, by which servers take turns.
--
-- links: of links.lua. staleness: a number of steps, or nil.
-- rejoin_within: seconds in which a server that was lost may come back; nil: it may not.
function server_variables.new(links, partitioner, staleness, rejoin_within)
  local self = setmetatable({ links = links, _partitioner = partitioner or false, staleness = staleness or false, _entries = {},
                                   _known = setmetatable({}, { __mode = "k" }), _made = 0, _defined = 0, _parts = {}, _optimizers = {},
                                   _hides = false, _trains = false, fits = 0, is_chief = links.is_chief, _counts = {},
                               _shared = {}, _rejoin_within = rejoin_within or false, closed = {},
                               _updates = {} }, Store)
  for server = 1, links.count do self._parts[server] = {} end
  return self
end

---- who keeps what -----------------------------------------------------------------------------------------------------------------------

local function storage(v)
  check(C.flow_variable_tensor(v.handle, out_tensor))
  return native.tensor(out_tensor[0])
end

-- Parts of a variable, as tf.distribute cuts it: the first ones have one more row.
local function cut(self, entry)
  local shape = entry.shape
  local count = entry.constraint and 1 or partitioners.count(self._partitioner or nil, shape, entry.dtype)
  local rows, row = shape[1] or 1, shape[1] and shape[1] > 0 and entry.size / shape[1] or entry.size
  local first = 0
  for k = 0, count - 1 do
    local own = count == 1 and rows or math.floor(rows / count) + (k < rows % count and 1 or 0)
    local size = count == 1 and entry.size or own * row
    local part = { entry = entry, first = first * entry.width, bytes = size * entry.width, shape = { unpack(shape) },
                   name = count == 1 and entry.name or ("%s/part_%d"):format(entry.name, k), server = self._made % self.links.count + 1 }
    if count > 1 then part.shape[1] = own end
    self._made = self._made + 1
    first = first + size
    local list = self._parts[part.server]
    list[#list + 1] = part
    part.index = #list
    entry.parts[k + 1] = part
  end
end

-- As Keras' config; false: it has none.
local function constraint_of(v)
  local text = native.text(C.flow_variable_constraint, v.handle)
  return text ~= "" and json.decode(text)
end

-- Makes entries for variables that have none; those of dtypes that servers do not keep, and those that the store makes itself (_hides), are
-- left out. The servers hear of them with the next define(). All tasks have to register the same in the same order.
function Store:register(list)
  if self._hides then return end
  for _, v in ipairs(list) do
    if not self._known[v] and KEPT[v.dtype] then
      local t = storage(v)
      local entry = { variable = v, name = v.path, shape = t.shape, size = t.size, dtype = t.dtype, width = KEPT[t.dtype],
                      constraint = constraint_of(v),
                      parts = {}, base = tensor.zeros(t.shape, { dtype = t.dtype, device = "cpu" }) }
      cut(self, entry)
      self._known[v] = entry
      self._entries[#self._entries + 1] = entry
    end
  end
end

-- What is known of a variable that the servers keep, by its handle.
function Store:entry_of(handle)
  for _, entry in ipairs(self._entries) do
    if entry.variable.handle == handle then return entry end
  end
  raise("%s: an optimizer trains the variable %q, which is not one of the servers'", WHAT, native.string(C.flow_variable_name(handle)))
end

---- messages with values -----------------------------------------------------------------------------------------------------------------

local function bytes_of(t) return native.cast("char *", native.data(t)) end

-- The letters and pieces of one server's parts: what(part) is a letter, and the array that the part's elements come from.
local function compose(self, server, what)
  local parts = self._parts[server]
  local letters, pieces, n = {}, { at = native.array("const void *", #parts + 1), bytes = native.array("int64_t", #parts + 1) }, 0
  for i = 1, math.min(#parts, self._counts[server]) do
    local letter, from = what(parts[i])
    letters[i] = letter
    if from then
      pieces.at[n], pieces.bytes[n] = from + parts[i].first, parts[i].bytes
      n = n + 1
    end
  end
  pieces.n = n
  return table.concat(letters), pieces
end

-- Takes the values that a server has sent; it may have more than this task knows of.
local function take(self, server, bytes, count)
  local offset = 0
  for i = 1, self._counts[server] do
    local part = self._parts[server][i]
    if offset + part.bytes > count then raise("%s: ps:%d has sent %.0f bytes, too few", WHAT, server - 1, count) end
    native.copy(bytes_of(part.entry.base) + part.first, bytes + offset, part.bytes)
    offset = offset + part.bytes
  end
end

-- Where they go if they are just those.
local function places_of(self, server)
  local count = self._counts[server]
  local places = { at = native.array("char *", count + 1), bytes = native.array("int64_t", count + 1), n = count }
  for i = 1, count do
    local part = self._parts[server][i]
    places.at[i - 1], places.bytes[i - 1] = bytes_of(part.entry.base) + part.first, part.bytes
  end
  return places
end

-- One message to every server. what: of compose; how: { rates = of each server, clock =, fills = } of task.lua, or nil.
local function exchange(self, what, how)
  local newest = {}
  how = how or {}
  self.links:ask_all(function(server)
    local ops, pieces = compose(self, server, what)
    return { is = "step", ops = ops, rates = how.rates and how.rates[server], clock = how.clock, pulls = true,
             fills = how.fills and self._counts[server] or nil }, pieces, places_of(self, server)
  end, function(server, said, bytes, count)
    if bytes or count == 0 then take(self, server, bytes, count) end
    for key, iterations in pairs(said.iterations) do newest[key] = math.max(newest[key] or 0, iterations) end
  end)
  for i = 1, self._defined do
    local entry = self._entries[i]
    native.try(C.flow_variable_assign, context, entry.variable.handle, native.pointer(entry.base))
  end
  optimizers.note(self, newest)
end

-- A letter for what has changed in a variable since it was taken, and the differences.
local function difference(changes, entry)
  local known = changes[entry]
  if known == nil then
    local now = tensor.on_host(storage(entry.variable))
    local differs = now:ne(entry.base):any():item()
    known = (differs == true or differs == 1) and now - entry.base or false
    changes[entry] = known
  end
  if not known then return "." end
  return "+", bytes_of(known)
end

-- Memory for messages of all values, where the server is on this machine.
local function share(self, server)
  local bytes = 0
  for _, part in ipairs(self._parts[server]) do bytes = bytes + part.bytes end
  if self._shared[server] or bytes < LEAST_SHARED then return end
  self._shared[server] = true
  self.links:share(server, bytes)
end

---- definitions --------------------------------------------------------------------------------------------------------------------------

-- Makes the servers know all variables that are registered, with the chief's values; the others wait for the chief. between: called when
-- the servers have room, before the chief's values are there.
function Store:define(between)
  if self._defined == #self._entries then return end
  for server = 1, self.links.count do
    local parts = self._parts[server]
    local first = self._counts[server] or 0
    while first < #parts do
      local list, bytes = {}, 0
      while #list < AT_ONCE and bytes < NAMES_AT_ONCE and parts[first + #list + 1] do
        local part = parts[first + #list + 1]
        list[#list + 1] = { name = part.name, dtype = part.entry.dtype, shape = json.list { unpack(part.shape) },
                            constraint = part.entry.constraint or nil }
        bytes = bytes + #part.name
      end
      local said = self.links:ask(server, { is = "define", first = first, parts = json.list(list) })
      for i = first + 1, first + #list do parts[i].new = i > said.filled end
      first = first + #list
    end
    self._counts[server] = #parts
    share(self, server)
  end
  self._defined = #self._entries
  if not self.is_chief then return self:pull() end
  if between then between() end
  local values = {}
  exchange(self, function(part)
    if not part.new then return "." end
    part.new = nil
    values[part.entry] = values[part.entry] or tensor.on_host(storage(part.entry.variable)):contiguous()
    return "=", bytes_of(values[part.entry])
  end, { fills = true })
end

---- steps --------------------------------------------------------------------------------------------------------------------------------

function Store:pull()
  self:define()
  if self._defined > 0 then exchange(self, function() return "." end) end
end

-- The same at the end of what all have done together, after which all go on with the same variables: the chief's publish waits for it.
-- phase: which of several it was, or nil.
function Store:take_what_is_left(phase)
  self:pull()
  if not self.is_chief then self.links:ask(1, { is = "taken", phase = phase }) end
end

-- On the chief, before others take part: publishes the values that it assigned, and the states of optimizers that it restored. The loss of
-- a server meanwhile changes neither.
function Store:publish(list)
  self:surely(function() self.links:ask(1, { is = "settled" }) end)
  self:surely(function() self:define() end)
  local changed = {}
  for _, entry in ipairs(self._entries) do
    local value = tensor.on_host(storage(entry.variable))
    local differs = value:ne(entry.base):any():item()
    if differs == true or differs == 1 then changed[entry] = entry.variable:value() end
  end
  self:surely(function()
    for _, optimizer in ipairs(list or {}) do optimizers.install(self, optimizer) end
    for entry, value in pairs(changed) do entry.variable:assign(value) end
    local changes = {}
    if self._defined > 0 then exchange(self, function(part) return difference(changes, part.entry) end) end
  end)
end

function Store:fetch() self:surely(function() optimizers.fetch(self) end) end

---- servers that are lost ----------------------------------------------------------------------------------------------------------------

-- After a failure: connects again if that is because a server was lost and may come back, and gives it what it had: the chief's copies of
-- the variables, and the slots as the chief has last fetched them. Else raises the failure.
function Store:recover(problem)
  if not self._rejoin_within or not self.links.lost then error(problem, 0) end
  log.warning("%s: a parameter server was lost; this process waits up to %g s until it is there again", WHAT, self._rejoin_within)
  repeat
    local ok, failure = pcall(function()
      self.links:reopen(self._rejoin_within)
      self._defined, self._counts, self._shared, self._trains = 0, {}, {}, false
      optimizers.forget(self)
      self:define(function() optimizers.renew(self, self.links.renewed) end)
      if not self.is_chief or not self.links.renewed[1] then return end
      for _, message in ipairs(self.closed) do self.links:ask(1, message) end
    end)
    if not ok and not self.links.lost then error(failure, 0) end
  until ok
  log.info("%s: all parameter servers are there: this process goes on", WHAT)
end

-- Whether a server that is lost may come back.
function Store:survives() return self._rejoin_within ~= false end

-- Calls f, which may be called again after a server was lost.
function Store:surely(f)
  while true do
    local ok, result = pcall(f)
    if ok then return result end
    self:recover(result)
  end
end

Store.collect, Store.updates_of = optimizers.collect, optimizers.updates_of

-- After a step.
function Store:push()
  self:define()
  if self._defined == 0 then return end
  local changes, gradients, rates = {}, optimizers.gather(self)
  exchange(self, function(part)
    local found = gradients[part.entry]
    if found then return string.char(65 + found.numbers[part.server]), bytes_of(found.gradient) end
    return difference(changes, part.entry)
  end, { rates = rates, clock = self.staleness and true or nil })
end

-- Whether this worker trains now: others wait for it, where staleness is bounded.
function Store:pace(trains)
  if not self.staleness or self._trains == trains then return end
  self._trains = trains
  self.links:ask_all(function() return { is = "pace", trains = trains, staleness = self.staleness } end)
end

return server_variables
