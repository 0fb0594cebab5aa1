-- recovery.lua: workers that come back. When a worker is lost the others keep process, model and optimizer, wait until it is there again,
-- and all go on from the newest state: no step that any of them has made is made twice.
--
--   MultiWorkerMirroredStrategy { max_restarts = 100, rejoin_timeout = 600 }      or FLOW_MAX_RESTARTS, as flowlua launch sets it
--
-- What goes on is a stretch, such as a call of fit. Stretches are counted; all workers make the same ones.
--
--   those who are left        a call fails -> rejoin -> the worker with the newest state notes which stretch it is in, and where -> share
--   who was started again     runs the script from its beginning, apart from the others, as a single worker would. Stretches before the
--                             one of the note are left out; there it joins the others -> share
--
-- After its last stretch a worker waits at its end for the others, so that one who is lost then gets the state, too: it is at the end of
-- that stretch at once, and does the rest of the script apart, since the others may have done theirs.

local native = require "flow.ffi"
local log = require "flow.log"
local errors = require "flow.errors"

local C, raise = native.C, errors.raise
local recovery = {}

local NOTE = "recovery"           -- the key under which the newest worker says where all go on
local DONE = "done"               -- it says that a stretch is over
local ROOM = 4096
local FOR_EVER = 1e6              -- seconds: whoever is waited for leaves the note, or is lost

-- Whether the workers of a strategy wait for one that is lost.
function recovery.of(strategy)
  return strategy and strategy._recovery and strategy._worker and strategy._recovery or nil
end

-- max_restarts: how many times at most. An object that a strategy keeps; models: those that stretches have trained
-- (train/fit_recovery.lua).
function recovery.new(max_restarts)
  return { left = max_restarts, most = max_restarts, stretch = 0, last = false, models = {} }
end

-- A stretch begins, the next one of the program. Returns its number.
function recovery.begin(self)
  self.stretch = self.stretch + 1
  return self.stretch
end

-- Whether the generation is over because another worker was lost: then all that fails here follows from that.
local function lost_another(worker)
  return worker._handle and C.flow_worker_check(worker._handle) ~= 0
end

-- What the newest worker has noted: the stretch, and a text of the stretch's own.
local function read_note(worker)
  local text = native.array("char", ROOM)
  native.check(C.flow_worker_lookup(worker.handle, NOTE, FOR_EVER, text, ROOM))
  local number, where = native.string(text):match("^(%d+) (.*)$")
  return tonumber(number), where
end

local function write_note(self, worker, where)
  if worker.rank ~= worker.newest then return end
  native.check(C.flow_worker_publish(worker.handle, NOTE, ("%d %s"):format(self.stretch, where)))
end

-- Waits for the next generation. step: of this worker's state, -1: it has none; problem: why it is needed.
local function rejoin(self, strategy, step, problem)
  local worker = strategy._worker
  local preempted = worker:was_preempted()
  if self.left == 0 and not preempted then
    log.warning("%d workers have come back already, which is what max_restarts allows", self.most)
    error(problem, 0)
  end
  if not preempted then self.left = self.left - 1 end
  local told = native.string(C.flow_last_error())
  if C.flow_worker_check(worker.handle) ~= 0 then told = native.string(C.flow_last_error()) end
  log.warning("%s; waiting until it is there again", told)
  strategy:_rejoin(step)
  if worker.newest_step < 0 then raise("all workers were lost: nobody has the state any more; start the job again") end
  if step >= 0 then log.info("all %d workers are there: training goes on from the state of step %.0f", worker.count, worker.newest_step) end
end

-- Calls f() again and again until it returns, and returns what it returned. After a worker was lost, before f is called again, all take
-- over the newest state. stretch: { step() -> of this worker's state; where() -> a text, for who comes back; share(worker) }.
function recovery.run(self, strategy, stretch, f)
  local worker = strategy._worker
  local restored = true
  self.last, self.inside = stretch, true

  local function attempt()
    if not restored then
      write_note(self, worker, stretch.where())
      stretch.share(worker)
      restored = true
    end
    return f()
  end

  while true do
    local ok, result = pcall(attempt)
    self.inside = not ok
    if ok then return result end
    if native.interrupted() or not lost_another(worker) then error(result, 0) end
    restored = false
    rejoin(self, strategy, stretch.step(), result)
  end
end

-- A worker that was started again comes to a stretch: it waits for the note, joins the others and takes over their state. arrive(where):
-- what is to be done before, apart; nil: the stretch has ended. Returns whether the stretch is over already, and is left out.
function recovery.catch_up(self, strategy, stretch, arrive)
  local worker = strategy._worker
  while worker.apart do
    local ok, number, where = pcall(read_note, worker)
    if ok and number > self.stretch then return true end
    if ok then
      if number < self.stretch then
        raise("this worker was started again and is further than the others, who wait for it: does it run the same program?")
      end
      arrive(where ~= DONE and where or nil)
      strategy:_set_apart(false)
      ok, number = pcall(stretch.share, worker)
      self.last = stretch
      if ok and where == DONE then strategy:_set_apart(true) end
      if ok then return false end
    end
    if native.interrupted() or not lost_another(worker) then error(number, 0) end
    rejoin(self, strategy, -1, number)
    strategy:_set_apart(true)
  end
  return false
end

-- At the end of the program: waits for the others, and for those among them who are lost meanwhile.
function recovery.finish(self, strategy)
  local worker, last = strategy._worker, self.last
  if not last or self.inside then return end                      -- inside: a program that ends in the middle of a stretch waits for nobody
  if worker.apart then strategy:_set_apart(false) end
  local ended = setmetatable({ where = function() return DONE end }, { __index = last })
  recovery.run(self, strategy, ended, function()
    local status
    repeat status = C.flow_worker_barrier(worker.handle, "the end of the program") until status ~= C.FLOW_TIMED_OUT
    native.check(status)
  end)
end

return recovery
