-- recovery.lua: workers that come back. When a worker is lost the others keep process, model and optimizer, wait until it is there again,
-- and all go on from the newest state: no step that any of them has made is made twice.
--
--   MultiWorkerMirroredStrategy { max_restarts = 100, rejoin_timeout = 600 }      or FLOW_MAX_RESTARTS, as flowlua launch sets it
--
-- What goes on is a stretch, such as a call of fit, evaluate, predict or run_with_recovery. Stretches are counted; all workers make the
-- same ones.
--
--   those who are left        a call fails -> rejoin -> the worker with the newest state notes which stretch it is in, and where -> share
--   who was started again     runs the script from its beginning, apart from the others, as a single worker would. Stretches before the
--                             one of the note are left out; there it joins the others -> share
--
-- If a worker is lost between two stretches, where the others make variables or save, each goes on apart until the next stretch, where all
-- meet. What decides who has the newest state is a count of steps that grows with each stretch, too.
--
-- After its last stretch a worker waits at its end for the others, so that one who is lost then gets the state, too: it is at the end of
-- that stretch at once, and does the rest of the script apart, since the others may have done theirs.
--
-- A stretch is a table: step() -> steps that were made in it; where() -> a text, for a worker that comes back; share(worker): all take over
-- the state of worker.newest; opens (or nil): true for an opening stretch, which precedes the one with steps; torn (or nil): why step() may
-- say that this worker has none.

local native = require "flow.ffi"
local codec = require "flow.state_codec"
local log = require "flow.log"
local errors = require "flow.errors"
local data_draws = require "flow.distribute.data_draws"
local shards = require "flow.shards"

local C, raise = native.C, errors.raise
local recovery = { BEGIN = "begin" }      -- where() of a stretch that is made from its beginning

local NOTE = "recovery"           -- the key under which the newest worker says where all go on
local DONE = "done"               -- it says that a stretch is over
local RESULT = "result %d"        -- what a stretch returned, for workers that skip it
local ROOM = 65537                -- bytes of a published text and its end
local FOR_EVER = 1e6              -- seconds: the awaited worker leaves the note, or is lost

-- Whether the workers of a strategy wait for one that is lost.
function recovery.of(strategy)
  return strategy and strategy._recovery and strategy._worker and strategy._recovery or nil
end

-- An object that a strategy keeps. max_restarts: how many times at most. models: those that stretches have trained (fit_recovery.lua);
-- draws: how data sets draw that they have read; results: what they left, as texts. whole: whether this process has the state; pending: it
-- is apart since one was lost between two stretches. inside: a stretch is under way; broken: the last one ended with an error.
function recovery.new(max_restarts, whole)
  return { left = max_restarts, most = max_restarts, stretch = 0, steps = 0, last = false, inside = false, broken = false, models = {},
           results = {}, draws = data_draws.new(), whole = whole, pending = false }
end

-- A stretch begins, the next one of the program.
function recovery.begin(self)
  self.stretch, self.steps, self.inside = self.stretch + 1, self.steps + 1, true
end

-- It has begun.
function recovery.enter(self)
  self.steps = self.steps + 1
end

-- result: what it returns. For a worker that comes back later it keeps the state of the random numbers and, if it is short, the result, of
-- numbers, texts and tables of them.
function recovery.leave(self, stretch, result)
  local random = native.text(C.flow_context_save, native.context)
  local ok, text = pcall(codec.encode, { random = random, result = result }, nil, "a result")
  self.results[self.stretch] = ok and #text < ROOM and text or codec.encode({ random = random }, nil, "a result")
  self.steps, self.inside = self.steps + stretch.step() + 1, false
end

-- Whether the generation is over because another worker was lost: then all that fails here follows from that. (In a process that was
-- forked from a worker the check fails otherwise: it has nobody to wait for.)
local function lost_another(worker)
  return worker._handle and tonumber(C.flow_worker_check(worker._handle)) == C.FLOW_ABORTED
end

-- The text that some worker has published under a key, waiting up to `within` seconds; nil: it is not there.
local function look_up(worker, key, within)
  local text = native.array("char", ROOM)
  local status = tonumber(C.flow_worker_lookup(worker.handle, key, within, text, ROOM))
  if status == C.FLOW_NOT_FOUND then return nil end
  native.check(status)
  return native.string(text)
end

-- The stretch in which all go on, and a text of the stretch's own, as the newest worker has it.
local function agree_where(self, worker, stretch)
  if worker.rank == worker.newest then
    local where = stretch.where()
    for number, text in pairs(self.results) do      -- as many as the store takes
      if C.flow_worker_publish(worker.handle, RESULT:format(number), text) == C.FLOW_INVALID_STATE then break end
    end
    native.check(C.flow_worker_publish(worker.handle, NOTE, ("%d %s"):format(self.stretch, where)))
    return self.stretch, where
  end
  local number, where = look_up(worker, NOTE, FOR_EVER):match("^(%d+) (.*)$")
  return tonumber(number), where
end

-- The others have ended this stretch: what it left there. Models that are made after it begin with the same values.
local function take_result(self, worker)
  local text = look_up(worker, RESULT:format(self.stretch), 0)
  self.results[self.stretch] = text
  if text then native.check(C.flow_context_restore(native.context, codec.decode(text, nil, "a result").random)) end
end

-- What it returned, or nil.
function recovery.result(self)
  local text = self.results[self.stretch]
  return text and codec.decode(text, nil, "a result").result
end

-- All workers take the state of the newest one; from here on this process has it.
local function take_over(self, worker, stretch)
  self.steps = tonumber(worker:broadcast_text(("%.0f"):format(self.steps)))
  stretch.share(worker)
  self.whole, self.pending = true, false
  rawset(worker, "behind", false)
end

-- "worker:0, worker:2": those that take part, the first eight.
local function names_of(worker)
  local names = {}
  for rank = 0, math.min(worker.count, 8) - 1 do names[rank + 1] = worker:name_of(rank):match("^%S+") end
  return table.concat(names, ", ") .. (worker.count > 8 and (" and %d more"):format(worker.count - 8) or "")
end

-- Who goes on. The chief says it once for all, where workers come and go.
local function tell_members(strategy)
  local worker, p = strategy._worker, strategy._placement
  if not p.elastic then
    log.info("all %d workers are there: they go on from the newest state", worker.count)
  elseif worker.rank == 0 then
    local least = shards.least(worker.count)
    log.info("training goes on with %d of %d workers, from the newest state: %s (%d shards, %s on each)", worker.count, p.workers,
      names_of(worker), p.count, least == p.replicas and least or ("%d or %d"):format(least, p.replicas))
  end
end

-- Waits for the next generation. step: of this worker's state, -1: it has none; problem: why it is needed; torn (or nil): why this worker
-- may have none though it was not lost.
local function rejoin(self, strategy, step, problem, torn)
  local worker = strategy._worker
  local grown = worker:has_grown()
  local uncounted = grown or worker:was_preempted()
  if self.left == 0 and not uncounted then
    log.warning("%d workers have come back already, which is what max_restarts allows", self.most)
    error(problem, 0)
  end
  if not uncounted then self.left = self.left - 1 end
  local told = native.string(C.flow_last_error())
  if C.flow_worker_check(worker.handle) ~= 0 then told = native.string(C.flow_last_error()) end
  local within = strategy._placement.elastic and strategy._shrink_after
  if not grown then
    log.warning("%s; waiting %s", told, within and ("%g s until it is there again, then for those that are left"):format(within)
      or "until it is there again")
  elseif worker.rank == 0 then log.info("%s: the workers pause for it", told) end
  strategy:_rejoin(step)
  if worker.newest_step < 0 then
    raise("no worker has the state: %s; start the job again", torn and step < 0 and torn or "all workers were lost")
  end
  if step >= 0 then tell_members(strategy) end
end

local function step_of(self, stretch)
  local steps = stretch.step()
  return steps >= 0 and self.steps + steps or -1
end

-- Calls f() again and again until it returns, and returns what it returned. After a worker was lost, before f is called again, all take
-- over the newest state. over (or nil): called in f's place where the others have ended this stretch; this worker is apart then. met: all
-- are together already, unless false.
function recovery.run(self, strategy, stretch, f, over, met)
  local worker = strategy._worker
  local restored = met ~= false
  self.last = stretch

  local function attempt()
    local ended = false
    if not restored then
      local number, where = agree_where(self, worker, stretch)
      ended = number > self.stretch
      if ended then take_result(self, worker) end
      local apart = ended or stretch.opens and where ~= recovery.BEGIN
      if not apart then take_over(self, worker, stretch) end
      if apart or where == DONE and stretch.where() ~= DONE then strategy:_set_apart(true) end
      restored = true
    end
    if ended and over then return over() end
    return f()
  end

  while true do
    local ok, result = pcall(attempt)
    self.broken = not ok
    if ok then return result end
    if native.interrupted() or not lost_another(worker) then
      self.inside = false
      error(result, 0)
    end
    restored = false
    rejoin(self, strategy, step_of(self, stretch), result, stretch.torn)
  end
end

-- A worker that is apart comes to a stretch: it joins the others where they are, and all take over the newest state. arrive(where): what is
-- to be done before, apart; nil: the stretch has ended. Returns whether the stretch is over already, and is left out.
function recovery.catch_up(self, strategy, stretch, arrive)
  local worker = strategy._worker

  -- Whether the stretch is over, and whether this worker stays apart.
  local function attempt()
    local number, where = agree_where(self, worker, stretch)
    if number > self.stretch then
      take_result(self, worker)
      return true, true
    end
    if number < self.stretch then
      raise("this worker was started again and is ahead of the others, which wait for it: does it run the same program?")
    end
    if stretch.opens and where ~= recovery.BEGIN then return false, true end
    if arrive then arrive(where ~= DONE and where or nil) end
    strategy:_set_apart(false)
    take_over(self, worker, stretch)
    self.last = stretch
    return false, where == DONE
  end

  while worker.apart do
    local ok, over, apart = pcall(attempt)
    if ok then
      if apart and not worker.apart then strategy:_set_apart(true) end
      return over
    end
    if native.interrupted() or not lost_another(worker) then error(over, 0) end
    rejoin(self, strategy, self.whole and self.steps or -1, over)
    strategy:_set_apart(true)
  end
  return false
end

-- A stretch that is made from its beginning where a worker is lost: f(), whose result is returned, and kept as stretch.result for a
-- worker that comes back after it. Within another one it is a part of it.
function recovery.whole(self, strategy, stretch, f)
  if self.inside then return f() end
  recovery.begin(self)
  local over = recovery.catch_up(self, strategy, stretch)
  if over or strategy._worker.apart then
    self.inside = false
    if over then return recovery.result(self) or f() end
    return stretch.result or f()
  end
  local worker = strategy._worker
  stretch.result = recovery.run(self, strategy, stretch, function()
    worker:let_in()
    return worker:without_pause(f)
  end, function() return recovery.result(self) or f() end)
  recovery.leave(self, stretch, stretch.result)
  return stretch.result
end

-- f(...), which workers do together between two stretches, and which can be done apart.
function recovery.guard(strategy, f, ...)
  local self, worker = recovery.of(strategy), strategy._worker
  if not self or self.inside or worker.apart then return f(...) end
  local results = { pcall(f, ...) }
  if results[1] then return unpack(results, 2, table.maxn(results)) end
  if native.interrupted() or not lost_another(worker) then error(results[2], 0) end
  rejoin(self, strategy, self.steps, results[2])
  strategy:_set_apart(true)
  self.pending = true
  return f(...)
end

-- At the end of the program: waits for the others, and for those among them who are lost meanwhile.
function recovery.finish(self, strategy)
  local worker, last, pending = strategy._worker, self.last, self.pending
  if not last or not worker._handle then return end
  if self.inside or self.broken then return end      -- a program that ends in the middle of a stretch waits for nobody
  if worker.apart then strategy:_set_apart(false) end
  local ended = setmetatable({ where = function() return DONE end, step = function() return 0 end, opens = false }, { __index = last })
  recovery.run(self, strategy, ended, function()
    local status
    repeat status = C.flow_worker_barrier(worker.handle, "the end of the program") until status ~= C.FLOW_TIMED_OUT
    native.check(status)
  end, nil, not pending)
end

return recovery
