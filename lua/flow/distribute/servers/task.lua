-- task.lua: what a parameter server does: it keeps its parts of the variables and updates them by the gradients that workers send;
-- ps:0 also hands out work (work.lua). It ends when the chief says that the job is done.
--
-- A message is an object of JSON, and bytes (flow_server_*). { is = "define" } and the like name a function of `answers` below, which
-- returns the answer, and pieces of bytes, or nil: what it waits for is not there yet, and it is asked again after the next message.
--
-- All runs on the process' main thread: the threads of flow_server_* only read and write messages. The state is one table, `server`:
--   handle, index     the flow_server, and the task's number among the servers, from 0
--   version, cluster  of this program, and of TF_CONFIG as a hash: a peer has to have the same
--   began             a text that no other process of this task has: peers tell a server that was started again by it
--   parts             the parts of variables, by the number that the chief gave them, from 1; bytes: of all parts; filled: how many of them
--                     have got their values from the chief
--   room              bytes of the largest message beside parts; with bytes it is the most that a message may have
--   optimizers        by key: { handle =, number =, has = by index of a part whether it has slots for it }; by_number: the same by number,
--                     from 0; optimizer_count
--   peers             by number of the connection: { number =, name =, chief =, process =, left =, clock = }; name and the rest come with
--                     hello
--   came              by name: tasks that were here
--   waiting           { peer =, message = } of questions that are not answered yet, in order
--   scopes            of work.lua
--   trainers          how many chiefs and workers the cluster has
--   met, lost, done   whether the chief was here; the name of a chief that is gone; whether the chief has said that all is done
--   since             when lost or done began, in seconds; looked: the second in which it was last looked at what does not come by messages
--   times             see run(); listens_since: by flow_clock; chief: its name and address, for messages

local os = require("flow.host").os
local native = require "flow.ffi"
local errors = require "flow.errors"
local arguments = require "flow.arguments"
local json = require "flow.json"
local log = require "flow.log"
local tensor = require "flow.tensor"
local work = require "flow.distribute.servers.work"

local C, check, raise = native.C, native.check, errors.raise
local context = native.context
local server_task = { PROTOCOL = 2 }

local LOOK_EVERY, SLACK = 1, 1048576       -- seconds; bytes of messages beside variables
local LEAVE_WITHIN = 10                    -- seconds for workers to come and to end after the chief has
local out_tensor, out_variable, out_optimizer = native.out("flow_tensor"), native.out("flow_variable"), native.out("flow_optimizer")
local answers = {}

local function refusal(text, ...) return { error = text:format(...) } end

---- parts of variables --------------------------------------------------------------------------------------------------------------

local function data_of(part)
  check(C.flow_variable_tensor(part.variable, out_tensor))
  return native.data(native.tensor(out_tensor[0]))
end

local function shape_of(description) return ("%s {%s}"):format(description.dtype, table.concat(description.shape, ", ")) end

-- Adds a part { name =, shape = a text, bytes =, variable =, change = a tensor into which gradients and differences of messages are copied
-- }, zeros until the chief sends its values. description: { name =, shape =, dtype =, constraint = as Keras' config, or nil }.
local function add_part(server, description)
  local value = tensor.zeros(description.shape, { dtype = description.dtype, device = "cpu" })
  check(C.flow_variable_new(native.pointer(value), description.name, 1, C.FLOW_MIRRORED, out_variable))
  local part = { name = description.name, shape = shape_of(description), change = value,
                 bytes = value.size * C.flow_dtype_size(native.dtype(description.dtype)),
                 variable = native.own(out_variable, C.flow_variable_release) }
  local constraint = description.constraint
  if constraint then
    local options = arguments.native(constraint.class_name, constraint.config)
    native.try(C.flow_variable_set_constraint, part.variable, constraint.class_name, options)
  end
  server.parts[#server.parts + 1] = part
  server.bytes = server.bytes + part.bytes
end

-- From the chief: makes parts of variables, or finds the existing ones; from others: waits for them. All must describe the same parts.
function answers.define(server, peer, message)
  local count = #message.parts
  if peer.chief then
    for i, description in ipairs(message.parts) do
      if not server.parts[message.first + i] then add_part(server, description) end
    end
    C.flow_server_limit(server.handle, server.bytes + server.room)
  elseif message.first + count > server.filled then
    return nil
  end
  for i, description in ipairs(message.parts) do
    local part, shape = server.parts[message.first + i], shape_of(description)
    if part.name ~= description.name or part.shape ~= shape then
      return refusal("%s has the variable %q %s where the chief has %q %s: do all tasks run the same script?", peer.name, description.name,
        shape, part.name, part.shape)
    end
  end
  return { filled = server.filled }
end

-- Room for messages that are larger than the variables.
function answers.expect(server, _, message)
  server.room = math.max(server.room, message.bytes + SLACK)
  C.flow_server_limit(server.handle, server.bytes + server.room)
  return {}
end

-- Memory of the worker's on this machine, for what comes next.
function answers.share(server, peer, message)
  return { shared = tonumber(C.flow_server_share(server.handle, peer.number, message.bytes, message.where)) == 0 }
end

---- optimizers ------------------------------------------------------------------------------------------------------------------------

-- An optimizer, by a key that is the same on all workers, for these parts. The first worker that needs it sends its description.
function answers.optimizer(server, _, message)
  local known = server.optimizers[message.key]
  if not known then
    check(C.flow_optimizer_from_config(message.config, out_optimizer))
    known = { handle = native.own(out_optimizer, C.flow_optimizer_release), number = server.optimizer_count, has = {} }
    server.optimizers[message.key], server.optimizer_count = known, server.optimizer_count + 1
    server.by_number[known.number] = known
    for _, index in ipairs(message.undecayed) do
      check(C.flow_optimizer_exclude_from_weight_decay(known.handle, server.parts[index].variable, nil))
    end
  end
  local list, count = native.out("flow_variable", #message.parts + 1), 0
  for _, index in ipairs(message.parts) do
    if not known.has[index] then
      list[count], count = server.parts[index].variable, count + 1
      known.has[index] = true
    end
  end
  if count > 0 then check(C.flow_optimizer_build(known.handle, list, count)) end
  return { number = known.number }
end

-- The number of updates that an optimizer has made.
local function iterations_of(optimizer)
  return C.flow_variable_number(C.flow_optimizer_iterations(optimizer.handle))
end

-- Copies the bytes of a message from an offset into part.change; returns the offset after them. Raises where the message ends before.
local function take_bytes(part, event, offset)
  if offset + part.bytes > event.count then raise("a message of %.0f bytes has too few for %q", tonumber(event.count), part.name) end
  native.copy(native.data(part.change), event.bytes + offset, part.bytes)
  return offset + part.bytes
end

local function assign_number(handle, value, dtype)
  native.try(C.flow_variable_assign, context, handle, native.pointer(tensor.tensor(value, { dtype = dtype, device = "cpu" })))
end

-- The numbers that an optimizer keeps once for all variables, after these were assigned.
local function set_scalars(known, values)
  local list, count = json.list {}, C.flow_optimizer_slot_count(known.handle)
  for i = C.flow_optimizer_variable_count(known.handle) * C.flow_optimizer_slot_kinds(known.handle), count - 1 do
    local scalar = C.flow_optimizer_slot(known.handle, i)
    if values then assign_number(scalar, values[#list + 1] or raise("a scalar of the optimizer is missing"), "float32") end
    list[#list + 1] = C.flow_variable_number(scalar)
  end
  return list
end

-- One slot of the parts that an optimizer has, in their order, and what it has once for all; or takes these.
function answers.slots(server, _, message, event)
  local known, pieces, offset = server.by_number[message.number] or raise("there is no optimizer %d", message.number), {}, 0
  for index, part in ipairs(server.parts) do
    local slot = known.has[index] and C.flow_optimizer_slot_of(known.handle, part.variable, message.kind) or nil
    if slot ~= nil and message.sets then
      offset = take_bytes(part, event, offset)
      native.try(C.flow_variable_assign, context, slot, native.pointer(part.change))
    elseif slot ~= nil then
      pieces[#pieces + 1] = { data_of { variable = slot }, part.bytes }
    end
  end
  local scalars = set_scalars(known, message.sets and message.scalars)
  if message.sets then assign_number(C.flow_optimizer_iterations(known.handle), message.iterations, "int64") end
  return { iterations = iterations_of(known), scalars = scalars }, pieces
end

---- steps -----------------------------------------------------------------------------------------------------------------------------

-- Updates parts by the gradients in part.change. gradients: lists of parts by number of their optimizer; rates: by the same number as a
-- text.
local function apply(server, gradients, rates)
  for number, list in pairs(gradients) do
    local optimizer = server.by_number[number] or raise("there is no optimizer %d", number)
    local tensors, variables = native.out("flow_tensor", #list), native.out("flow_variable", #list)
    for i, part in ipairs(list) do tensors[i - 1], variables[i - 1] = native.pointer(part.change), part.variable end
    local rate = tensor.tensor(rates[tostring(number)], { dtype = "float32", device = "cpu" })
    native.try(C.flow_optimizer_apply_at, context, optimizer.handle, native.pointer(rate), tensors, variables, #list)
  end
end

-- What becomes of each part is in `ops`, a letter each: "." nothing, "=" a new value, "+" a difference, "A" ... a gradient for
-- optimizer 0 ...; the bytes are theirs, one after the other.
local function change_parts(server, message, event)
  local gradients, offset = {}, 0
  for index = 1, #message.ops do
    local op, part = message.ops:byte(index), server.parts[index]
    if op ~= 46 then offset = take_bytes(part, event, offset) end
    if op == 61 then native.try(C.flow_variable_assign, context, part.variable, native.pointer(part.change))
    elseif op == 43 then native.try(C.flow_variable_assign_add, context, part.variable, native.pointer(part.change))
    elseif op >= 65 then
      gradients[op - 65] = gradients[op - 65] or {}
      table.insert(gradients[op - 65], part)
    end
  end
  apply(server, gradients, message.rates or {})
end

local function values_of(server)
  local pieces = {}
  for i, part in ipairs(server.parts) do pieces[i] = { data_of(part), part.bytes } end
  return pieces
end

-- Whether a worker that is so far ahead of the slowest has to wait.
local function is_ahead(server, peer)
  if not server.staleness or not peer.clock then return false end
  for _, other in pairs(server.peers) do
    if other.clock and peer.clock - other.clock > server.staleness then return true end
  end
  return false
end

-- Changes, and the values after them. clock: this is a step of training, of a worker that others may have to wait for.
function answers.step(server, peer, message, event)
  if not message.changed then
    change_parts(server, message, event)
    message.changed = true
    if message.fills then server.filled = math.max(server.filled, message.fills) end
    if message.clock and peer.clock then peer.clock = peer.clock + 1 end
  end
  if message.clock and is_ahead(server, peer) then return nil end
  local iterations = {}
  for key, optimizer in pairs(server.optimizers) do iterations[key] = iterations_of(optimizer) end
  return { iterations = iterations }, message.pulls and values_of(server) or nil
end

-- This worker trains from here on, or no more: others wait for it where their staleness is bounded.
function answers.pace(server, peer, message)
  local least
  server.staleness = message.staleness or server.staleness
  for _, other in pairs(server.peers) do
    if other.clock and other ~= peer then least = math.min(least or other.clock, other.clock) end
  end
  peer.clock = message.trains and (peer.clock or least or 0) or nil
  return {}
end

---- tasks -------------------------------------------------------------------------------------------------------------------------------

-- A worker that was lost may come again, and has not come then.
local function forget(server, peer)
  server.peers[peer.number] = nil
  work.forget(server, peer)
  if not peer.name or peer.left then return end
  if server.times.waits_for_lost and not peer.chief then server.came[peer.name] = nil end
  log.warning("ps:%d: the connection to %s has ended; its work goes to other workers", server.index, peer.name)
  if peer.chief then server.lost = peer.name end
end

-- The first message of a task. It is refused where its program, cluster or name does not fit; a task that comes back (rejoins) takes the
-- place of its lost connection. A worker that comes when all is done is told so.
function answers.hello(server, peer, message)
  if message.protocol ~= server_task.PROTOCOL or message.version ~= server.version then
    return refusal("%s is flowlua %s (protocol %s), ps:%d is flowlua %s (protocol %d): install the same version in all tasks",
      message.name, message.version, message.protocol, server.index, server.version, server_task.PROTOCOL)
  end
  if message.cluster ~= server.cluster then
    return refusal("%s and ps:%d have different clusters in TF_CONFIG", message.name, server.index)
  end
  if server.done and not message.chief then
    peer.left, server.came[message.name] = true, true
    return { done = true }
  end
  for _, other in pairs(server.peers) do
    if other.name == message.name and message.rejoins then forget(server, other)
    elseif other.name == message.name then return refusal("there is a %s already, process %d", message.name, other.process) end
  end
  peer.name, peer.chief, peer.process = message.name, message.chief, message.process
  server.came[peer.name] = true
  return { index = server.index, began = server.began }
end

-- Whether the chief has ended in order. A task asks when it cannot reach other servers: they may have ended, too.
function answers.is_done(server) return { done = server.done } end

-- The chief has done all; or a worker leaves in order.
function answers.bye(server, peer)
  peer.left = true
  if peer.chief then server.done = true end
  return {}
end

local function answer(server, peer, message, event)
  local f = answers[message.is] or work.answers[message.is]
  if not f or not peer.name and message.is ~= "hello" then raise("an unexpected message %q", tostring(message.is)) end
  return f(server, peer, message, event)
end

-- Sends an answer. pieces: { { pointer, bytes }, ... } of memory that is copied before this returns, or nil.
local function reply(server, peer, said, pieces)
  local text = json.encode(said)
  local count = pieces and #pieces or 0
  local at, bytes = native.array("const void *", math.max(count, 1)), native.array("int64_t", math.max(count, 1))
  for i = 1, count do at[i - 1], bytes[i - 1] = pieces[i][1], pieces[i][2] end
  check(C.flow_server_reply(server.handle, peer.number, text, #text, at, bytes, count))
end

-- Answers, unless that has to wait. A message that makes no sense ends nothing but itself.
local function try(server, peer, message, event)
  local ok, said, pieces = pcall(answer, server, peer, message, event)
  if not ok then said, pieces = { error = (tostring(said):gsub("^[^\n]-:%d+: ", "")) }, nil end
  if said then reply(server, peer, said, pieces) end
  return said ~= nil
end

-- Asks again all that wait, in order; those of peers that are gone are dropped.
local function look_at_waiting(server)
  local waiting = server.waiting
  server.waiting = {}
  for _, entry in ipairs(waiting) do
    if server.peers[entry.peer.number] and not try(server, entry.peer, entry.message) then table.insert(server.waiting, entry) end
  end
end

-- A message, or that a peer has left. What is not a message of ours is answered as one of an unknown kind. The bytes of an event are valid
-- until the next one is taken: a question that waits keeps only its text.
local function take_event(server, event)
  local peer = server.peers[event.peer]
  if event.left ~= 0 then
    if peer then forget(server, peer) end
  else
    if not peer then
      peer = { number = event.peer }
      server.peers[event.peer] = peer
    end
    local ok, message = pcall(json.decode, native.string(event.text))
    if not ok or type(message) ~= "table" then message = { is = "nothing" } end
    if not try(server, peer, message, event) then table.insert(server.waiting, { peer = peer, message = message }) end
  end
  look_at_waiting(server)
end

-- Ends all that wait: there will be no answer.
local function give_up(server, why)
  for _, entry in ipairs(server.waiting) do reply(server, entry.peer, { error = why }) end
end

-- Whether each worker of the cluster was here.
local function all_came(server)
  local count = 0
  for _ in pairs(server.came) do count = count + 1 end
  return count >= server.trainers
end

-- Whether to end: the chief has done all, and the others have come and left, or should have. Raises if the chief does not come, or was lost
-- and does not come back.
local function has_ended(server)
  local times = server.times
  for _, peer in pairs(server.peers) do
    if peer.chief and not peer.left then server.lost, server.met = nil, true end
  end
  if not server.met and not server.done and C.flow_clock() - server.listens_since >= times.start_within then
    raise("ps:%d: %s did not come within %g s: is it running? A parameter server of a job that has ended has nothing to do", server.index,
      server.chief, times.start_within)
  end
  if not (server.done or server.lost) then
    server.since = nil
    return false
  end
  server.since = server.since or os.time()
  local seconds = os.time() - server.since
  if server.lost and seconds >= (times.rejoin_within or 0) then
    raise("ps:%d: %s was lost, so the job has no chief", server.index, server.lost)
  end
  return server.done and (next(server.peers) == nil and all_came(server) or seconds >= LEAVE_WITHIN)
end

-- Takes events until has_ended(). Once a second, without events too, it looks at what has taken too long.
local function serve(server)
  local event = native.new("flow_server_event")
  repeat
    local status = tonumber(C.flow_server_next(server.handle, LOOK_EVERY, event))
    if status == 0 then take_event(server, event) elseif status ~= C.FLOW_TIMED_OUT then check(status) end
    if server.looked ~= os.time() then
      server.looked = os.time()
      work.reclaim(server, server.times.reassign_after)
      look_at_waiting(server)
    end
  until has_ended(server)
end

-- The task that the others call the chief, with its address.
local function name_of_chief(cluster)
  local has_one = C.flow_cluster_count(cluster, C.FLOW_JOB_CHIEF) > 0
  local address = C.flow_cluster_address(cluster, has_one and C.FLOW_JOB_CHIEF or C.FLOW_JOB_WORKER, 0)
  return ("%s:0 %s"):format(has_one and "chief" or "worker", address ~= nil and native.string(address) or "")
end

-- Serves until the chief is done. resolver: of cluster.lua, of a task ps. times, in seconds: start_within: in which the chief has to come;
-- rejoin_within: in which it may come back after it was lost, nil: it may not; waits_for_lost: whether workers may come back, too, when the
-- chief is done; reassign_after: after which what a worker was given to do
-- goes to others, too.
function server_task.run(resolver, times)
  local cluster, out = resolver._handle, native.out("flow_server")
  check(C.flow_server_open(context, cluster, out))
  local server = { handle = native.own(out, C.flow_server_close), index = resolver.task_id, version = native.string(C.flow_version()),
                   cluster = native.text(C.flow_cluster_hash, cluster), parts = {}, bytes = 0, filled = 0, room = SLACK, optimizers = {},
                   by_number = {}, optimizer_count = 0, peers = {}, came = {}, waiting = {}, scopes = {}, leaving = {}, lost = nil,
                   done = false, since = nil, looked = false, trainers = resolver.num_workers, times = times, met = false,
                   listens_since = C.flow_clock(), chief = name_of_chief(cluster) }
  server.began = ("%s %d"):format(tostring(server.parts), os.time())      -- tells this process from one before
  log.info("ps:%d: listening on %s", server.index, native.string(C.flow_cluster_address(cluster, C.FLOW_JOB_PS, server.index)))
  local ok, problem = pcall(serve, server)
  give_up(server, ok and "the chief has ended" or tostring(problem))
  native.close(server.handle, C.flow_server_close)
  if not ok then error(problem, 0) end
end

return server_task
