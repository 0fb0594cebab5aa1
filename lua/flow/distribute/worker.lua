-- worker.lua: this process as one of several: the connection to the others (flow_worker), and what Lua exchanges over it. Every worker
-- makes the same calls in the same order.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local random = require "flow.tensor.random"
local tensor = require "flow.tensor"
local codec = require "flow.state_codec"
local script = require "flow.command_line"

local C, check, raise = native.C, native.check, errors.raise
local context = native.context

local Worker = object.hide(object.class("Worker"))
local worker = {}
local open_one           -- of this Lua state
local out_tensor = native.out("flow_tensor")

-- The others went on without this worker, and have finished: there is nothing that it could do, and it has not failed.
local function end_unneeded()
  error(setmetatable({ code = 0, text = native.string(C.flow_last_error()) }, script.Exit), 0)
end

-- Waits until all workers of the cluster (a flow_cluster) are there. options, times: of communication.lua. shards: how many replicas the
-- workers have together, or nil; then sums have one order, whatever the number of workers. recovers: nil, or { rejoin_within =, seconds in
-- which a lost worker has to come back, and, if they can go on with fewer, min_workers =, shrink_after = }.
function worker.open(cluster, chosen, times, shards, recovers)
  if open_one and open_one._handle then
    raise("this process takes part in its cluster already: use the strategy that was made first, or strategy:close() it")
  end
  local options = native.new("flow_worker_options")
  options.implementation = chosen.implementation
  options.gradient_dtype = chosen.compression == "none" and "float32" or chosen.compression
  for name, seconds in pairs(times) do options[name] = seconds end
  for name, value in pairs(recovers or {}) do options[name] = value end
  options.pairwise, options.shards = shards and 1 or 0, shards or 0
  local out = native.out("flow_worker")
  local status = tonumber(C.flow_worker_open(context, cluster, options, out))
  if status == C.FLOW_NOT_FOUND then end_unneeded() end
  check(status)
  local handle = native.own(out, C.flow_worker_close)      -- the collector does not wait for others: hosts call strategy:close()
  open_one = object.new(Worker, { _handle = handle, _steps = 0, count = C.flow_worker_count(handle), rank = C.flow_worker_rank(handle),
                                  engine = native.string(C.flow_worker_engine(handle)),
                                  name = ("%s:%d"):format(native.string(C.flow_job_name(C.flow_cluster_job(cluster))),
                                    C.flow_cluster_index(cluster)),
                                  _unshared = false,                    -- of saving.lua: it was said that folders are not shared
                                  timeout = times.timeout_seconds > 0 and times.timeout_seconds or 600,
                                  _counters = {}, _published = {},      -- of saving.lua
                                  speaker = 0,                          -- whose values a broadcast brings: the chief's, or the newest
                                  apart = false,                        -- whether it does what a single worker does, and reaches nobody
                                  behind = false,                       -- whether others have a newer state
                                  recovers = false })                   -- recovery.lua's guard(f, ...), where workers wait for lost ones
  open_one:_note_newest()
  return open_one
end

-- The connection that this Lua state has, or nil.
function worker.current()
  return open_one and open_one._handle and open_one or nil
end

local function handle_of(self)
  return self._handle or raise("this strategy was closed")
end

function Worker.fields.handle(self) return handle_of(self) end

local out_step = native.array("double", 1)

-- Who had the newest state when the generation began (newest), and its step (newest_step); -1: nobody had trained.
function Worker:_note_newest()
  rawset(self, "newest", C.flow_worker_newest(handle_of(self), out_step))
  rawset(self, "newest_step", out_step[0])
  rawset(self, "rank", C.flow_worker_rank(handle_of(self)))
  rawset(self, "count", C.flow_worker_count(handle_of(self)))
  rawset(self, "speaker", self.newest)
end

local out_first = native.array("int", 1)

-- How many of the shards this worker has, and the first of them; 0: there are none.
function Worker:shards()
  return C.flow_worker_shards(handle_of(self), out_first), out_first[0]
end

-- When a worker was lost: waits until all are there again, or as many as go on. step: of this worker's state; -1: it has none.
function Worker:rejoin(step)
  local status = tonumber(C.flow_worker_rejoin(handle_of(self), step))
  if status == C.FLOW_NOT_FOUND then
    self:close(false)
    end_unneeded()
  end
  check(status)
  rawset(self, "_counters", {})
  rawset(self, "_published", {})
  self:_note_newest()
end

-- f(...), which workers do together, and which each can do by itself if one is lost meanwhile.
function Worker:guard(f, ...)
  if self.recovers then return self.recovers(f, ...) end
  return f(...)
end

-- From here on what the workers do together is what a single one does, though its rank stays; false: no longer. Strategies call it.
function Worker:set_apart(apart)
  C.flow_worker_set_apart(handle_of(self), apart and 1 or 0)
  rawset(self, "apart", apart)
  rawset(self, "count", C.flow_worker_count(handle_of(self)))
end

-- Whether what a broadcast brings is what this worker gives.
local function speaks(self)
  return self.apart or self.rank == self.speaker
end

-- Calls f with another worker as the one whose values broadcasts bring.
function Worker:with_speaker(rank, f, ...)
  local before = self.speaker
  rawset(self, "speaker", rank)
  local ok, problem = pcall(f, ...)
  rawset(self, "speaker", before)
  if not ok then error(problem, 0) end
end

-- Leaves the cluster: orderly, or so that the others see a task that was lost; why (or nil): what they are told of it; that it was
-- preempted, if this process is to end.
function Worker:close(orderly, why)
  local handle = self._handle
  if not handle then return end
  rawset(self, "_handle", false)
  native.gc(handle, nil)
  if not orderly and native.preempted() then C.flow_worker_preempt(handle)
  elseif why and not orderly then C.flow_worker_fail(handle, tostring(why):match("^[^\n]*")) end
  local status = orderly and C.flow_worker_goodbye(handle) or 0
  local text = status ~= 0 and native.string(C.flow_last_error())
  C.flow_worker_close(handle)
  if text then raise("%s", text) end
end

-- Raises on all workers if these texts differ; what: their name in the message.
function Worker:agree(what, text)
  check(C.flow_worker_agree(handle_of(self), what, text))
end

-- Counts the steps of a loop that is not fit's, for heartbeats and for what others read if this worker is lost.
function Worker:progress()
  rawset(self, "_steps", self._steps + 1)
  C.flow_worker_progress(handle_of(self), self._steps, "strategy:run")
end

-- Raises who was lost, if the cluster has ended.
function Worker:check()
  check(C.flow_worker_check(handle_of(self)))
end

function Worker:barrier(name)
  check(C.flow_worker_barrier(handle_of(self), name))
end

-- Waits until the generation is over, since another worker is about to leave it, and raises why.
function Worker:await_end()
  local status
  repeat status = C.flow_worker_barrier(handle_of(self), "a worker that is preempted") until status ~= C.FLOW_TIMED_OUT
  check(status)
end

-- Whether the generation is over since another worker was preempted, and not lost.
function Worker:was_preempted()
  return C.flow_worker_was_preempted(handle_of(self)) ~= 0
end

-- Whether the generation is over since a worker has come, and none was lost.
function Worker:has_grown()
  return C.flow_worker_has_grown(handle_of(self)) ~= 0
end

-- A place where the workers can pause for one that has come, as the beginning of a step is; raises then.
function Worker:let_in()
  check(C.flow_worker_let_in(handle_of(self)))
end

-- f(...), in which they do not pause, since all of it would be done again.
function Worker:without_pause(f, ...)
  C.flow_worker_hold(handle_of(self), 1)
  local results = { pcall(f, ...) }
  if self._handle then C.flow_worker_hold(self._handle, 0) end
  if not results[1] then error(results[2], 0) end
  return unpack(results, 2, table.maxn(results))
end

local function bytes_of(pointer)
  return C.flow_tensor_size(pointer) * C.flow_dtype_size(C.flow_tensor_dtype(pointer))
end

---- numbers and texts ---------------------------------------------------------------------------------------------------------

-- A number of each worker, as a list in their order.
function Worker:gather_numbers(number)
  local mine, all = native.array("double", 1), native.array("double", self.count)
  mine[0] = number
  check(C.flow_worker_all_gather(handle_of(self), mine, 8, all))
  local list = {}
  for i = 1, self.count do list[i] = all[i - 1] end
  return list
end

-- `count` whole numbers of 64 bits of each worker, in an array one worker after the other.
function Worker:gather_words(words, count)
  local all = native.array("uint64_t", count * self.count)
  check(C.flow_worker_all_gather(handle_of(self), words, 8 * count, all))
  return all
end

-- "worker:1 10.0.0.2:2222", by the rank.
function Worker:name_of(rank) return native.string(C.flow_worker_name(handle_of(self), rank)) end

-- The chief's text.
function Worker:broadcast_text(text)
  local length = native.array("double", 1)
  length[0] = #text
  check(C.flow_worker_broadcast_from(handle_of(self), self.speaker, length, 8))
  local size = tonumber(length[0])
  local bytes = native.array("char", size)
  if speaks(self) then native.copy(bytes, text, size) end
  check(C.flow_worker_broadcast_from(handle_of(self), self.speaker, bytes, size))
  return native.string(bytes, size)
end

-- Makes the chief's random state everybody's, so that initializers, shuffles and dropout are the same on all workers.
function Worker:share_random_state()
  local state = self:broadcast_text(native.text(C.flow_context_save, context))
  local seed = self:broadcast_text(random.global_seed and ("%.17g"):format(random.global_seed) or "")
  check(C.flow_context_restore(context, state))
  random.global_seed = tonumber(seed) or false
end

-- Gives a variable the chief's value.
function Worker:broadcast_variable(v)
  local value = tensor.on_host(v:value())
  check(C.flow_worker_broadcast_tensor(handle_of(self), self.speaker, native.pointer(value)))
  if not speaks(self) then v:assign(value) end
end

-- The same of a list of variables, in place, also while something is traced: what is written is the storage.
function Worker:share_variables(list)
  for _, v in ipairs(list) do
    check(C.flow_variable_tensor(v.handle, out_tensor))
    local there = native.tensor(out_tensor[0])
    local here = tensor.on_host(there)
    check(C.flow_worker_broadcast_tensor(handle_of(self), self.speaker, native.pointer(here)))
    if not speaks(self) and there.device ~= "cpu" then check(C.flow_tensor_copy(native.pointer(there), native.pointer(here))) end
  end
end

-- The texts of all workers, as a list in their order.
function Worker:gather_texts(text)
  local mine = tensor.new(C.FLOW_UINT8, { #text })
  native.copy(C.flow_tensor_data(mine.p), text, #text)
  local list = {}
  for i, t in ipairs(self:gather_tensors(mine, "gathers texts")) do list[i] = native.string(C.flow_tensor_data(t.p), t.shape[1]) end
  return list
end

---- tensors -------------------------------------------------------------------------------------------------------------------------

-- A frame of 32 doubles: dtype, rank, eight dimensions, bytes, a text of at most 31 bytes with a zero after it that says what for, and the
-- values themselves if they fit in the rest.
local FRAME, PURPOSE, HEAD = 32, 11, 15
local INLINE, LONGEST_PURPOSE = (FRAME - HEAD) * 8, (HEAD - PURPOSE) * 8 - 1

-- A new tensor on the host for what a frame describes, and its bytes. Raises unless these are as many as the frame says: they are what is
-- copied into it.
local function unframe(frame)
  local shape = {}
  for axis = 1, tonumber(frame[1]) do shape[axis] = tonumber(frame[1 + axis]) end
  local made, bytes = tensor.new(tonumber(frame[0]), shape), tonumber(frame[10])
  if bytes_of(made.p) ~= bytes then
    raise("another worker has sent %.0f bytes for %s: do all workers run the same version?", bytes, tensor.shape_text(shape))
  end
  return made, bytes
end

-- Workers that take part in one call for different reasons run different programs, and would take each other's values. All see it.
local function check_purposes(self, frames)
  local first = native.string(native.cast("char *", frames + PURPOSE))
  for rank = 1, self.count - 1 do
    local other = native.string(native.cast("char *", frames + rank * FRAME + PURPOSE))
    if other ~= first then
      raise("%s %s, %s %s: do all workers run the same program?", self:name_of(0), first, self:name_of(rank), other)
    end
  end
end

local function write_frame(frame, pointer)
  frame[0], frame[1], frame[10] = C.flow_tensor_dtype(pointer), C.flow_tensor_rank(pointer), bytes_of(pointer)
  for axis = 1, C.flow_tensor_rank(pointer) do frame[1 + axis] = C.flow_tensor_dim(pointer, axis - 1) end
end

-- The chief's tensor; the others give none.
function Worker:broadcast_tensor(t)
  local frame = native.array("double", FRAME)
  if speaks(self) then
    t = tensor.on_host(t):contiguous()
    write_frame(frame, tensor.need_value(t, "broadcast"))
  end
  check(C.flow_worker_broadcast_from(handle_of(self), self.speaker, frame, FRAME * 8))
  if not speaks(self) then t = unframe(frame) end
  check(C.flow_worker_broadcast_from(handle_of(self), self.speaker, C.flow_tensor_data(t.p), tonumber(frame[10])))
  return t
end

-- The tensors of all workers, as a list in their order; dtypes and shapes may differ. purpose: what a worker does with them, such as
-- "gathers along axis 1"; raises on all if they do different things.
function Worker:gather_tensors(t, purpose)
  t = tensor.on_host(t):contiguous()
  local pointer = tensor.need_value(t, "gather")
  local bytes = bytes_of(pointer)
  local mine, all = native.array("double", FRAME), native.array("double", FRAME * self.count)
  write_frame(mine, pointer)
  native.copy(mine + PURPOSE, purpose, math.min(#purpose, LONGEST_PURPOSE))      -- the zero after it is there already
  if bytes <= INLINE then native.copy(mine + HEAD, C.flow_tensor_data(pointer), bytes) end
  check(C.flow_worker_all_gather(handle_of(self), mine, FRAME * 8, all))
  check_purposes(self, all)

  local list, sizes, most = {}, {}, 0
  for i = 1, self.count do
    list[i], sizes[i] = unframe(all + (i - 1) * FRAME)
    if sizes[i] > INLINE then most = math.max(most, sizes[i]) end
  end
  local padded, rows
  if most > 0 then
    padded, rows = tensor.new(C.FLOW_UINT8, { most }), tensor.new(C.FLOW_UINT8, { self.count, most })
    native.copy(C.flow_tensor_data(padded.p), C.flow_tensor_data(pointer), bytes)
    check(C.flow_worker_all_gather(handle_of(self), C.flow_tensor_data(padded.p), most, C.flow_tensor_data(rows.p)))
  end
  for i, received in ipairs(list) do
    local from = all + (i - 1) * FRAME + HEAD
    if sizes[i] > INLINE then from = native.cast("char *", C.flow_tensor_data(rows.p)) + (i - 1) * most end
    native.copy(C.flow_tensor_data(received.p), from, sizes[i])
  end
  return list
end

---- values ---------------------------------------------------------------------------------------------------------------------------

-- The chief's value: what state_codec.lua can hold. what: names it in messages.
function Worker:broadcast_value(value, what)
  local tensors, text = {}, ""
  if speaks(self) then
    text = codec.encode(value, function(t)
      tensors[#tensors + 1] = t
      return ("%d"):format(#tensors)
    end, what)
  end
  text = self:broadcast_text(text)
  local count = tonumber(self:broadcast_text(("%d"):format(#tensors)))
  for i = 1, count do tensors[i] = self:broadcast_tensor(tensors[i]) end
  if speaks(self) then return value end
  return codec.decode(text, function(name) return tensors[tonumber(name)] end, what)
end

return worker
