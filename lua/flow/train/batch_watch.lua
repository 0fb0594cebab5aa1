-- batch_watch.lua: what observes a loop over batches while it runs: callbacks, the progress bar, a backup. They are called between
-- executions, which have steps_per_execution batches each (compile). Within an execution no number is read, so that nothing waits for a
-- device. If only the bar observes the loop, an execution has as many batches as run in a short time.

local native = require "flow.ffi"

local executions = { clock = native.C.flow_clock }

local QUICK, MOST = 0.005, 16      -- seconds: a faster execution is doubled; batches: the most that one has

-- The number of batches in an execution.
function executions.size(model)
  return model._compiled and model._compiled.steps_per_execution or 1
end

-- Calls the hooks and moves the bar. How:
--   model, list (callbacks), bar
--   what     in the names of the hooks, on_<what>_batch_begin and _end. As in Keras they get the number of an execution's first batch, and
--            of the last one that a whole execution would have
--   logs     a function that returns what on_<what>_batch_end gets; shown: one that returns what the bar shows, or nil
--   count    the most batches that the loop can have
--   stops    (optional) returns whether a stop was requested; stop: returns whether the loop ends now because of that
--   run      (optional) the run of fit (fit_position.lua), which is told the batch
-- Returns nil if nothing observes the batches, so that the loop need not come here. Else three functions: after(batch, rows), to be called
-- after each batch, counted from 0, or after several that end with an execution, with the last one and the rows of all, which returns true
-- to end the loop; finish(), after a loop whose data ended; and every(), how many batches the loop may run before it comes here again.
function executions.watch(how)
  local list, bar, run, count = how.list, how.bar, how.run, how.count
  local on_begin, on_end = "on_" .. how.what .. "_batch_begin", "on_" .. how.what .. "_batch_end"
  local kept, watched = run and list:has("_after_batch"), list:has(on_end)
  local bar_alone = not watched and not list:has(on_begin) and not kept and not (how.stops and how.stops())
  if bar_alone and not bar:visible() then return nil end
  local size, start = executions.size(how.model), run and run.batch or 0
  local first, done, rows = 0, 0, 0      -- the execution's first batch; batches of the loop so far; rows of the execution so far

  local pace, looked = size, executions.clock()      -- batches that go together if only the bar observes them; when it last did

  -- Doubles the batches that go together as long as these take less than QUICK, else halves them, within MOST and not below an execution's.
  local function set_pace()
    local now = executions.clock()
    if now - looked < QUICK then pace = math.max(size, math.min(2 * pace, MOST))
    else pace = math.max(size, math.floor(pace / 2)) end
    looked = now
  end

  -- An execution has ended: tells its observers, in the order bar, hooks, backup, and begins the next one.
  local function conclude()
    bar:advance(done - first, rows)
    if watched then list:call(on_end, start + first + size - 1, how.logs()) end
    if kept then list:call("_after_batch", run, done - first) end
    if bar:due() then bar:draw(how.shown and how.shown()) end
    if bar_alone then set_pace() end
    first, rows = done, 0
  end

  local function after(batch, batch_rows)
    done, rows = batch + 1, rows + batch_rows
    if run then run.batch, run.pending = start + done, done end
    if done - first < size and done < count then return end
    conclude()
    if how.stops and how.stops() and how.stop() then return true end
    if done < count then list:call(on_begin, start + done, {}) end
  end

  local function finish()
    if done > first then conclude() end
  end

  if count > 0 then list:call(on_begin, start, {}) end
  return { after = after, finish = finish, every = function() return pace end }
end

return executions
