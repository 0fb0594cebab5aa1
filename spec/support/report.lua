--- Output handler of busted for scripts/test: prints failing tests only and appends one line per event to the file named
-- by FLOW_TEST_RESULTS: "start|pass|fail|skip <tab> name". The file is flushed line by line, so a test that kills the
-- process is the one that started and never ended.
return function()
  local busted = require "busted"
  local handler = require "busted.outputHandlers.base"()
  local path = assert(os.getenv("FLOW_TEST_RESULTS"), "FLOW_TEST_RESULTS names the file that results are appended to")
  local prefix = os.getenv("FLOW_TEST_PREFIX") or ""
  local words = { success = "pass", pending = "skip", failure = "fail", error = "fail" }

  local function record(word, name)
    local file = assert(io.open(path, "a"))
    file:write(word, "\t", prefix, (name:gsub("%s+", " ")), "\n")
    file:close()
  end

  local function explain(failure)
    local message = failure.message
    if type(message) ~= "string" then message = require("pl.pretty").write(message) end
    local trace = failure.trace or {}
    io.stdout:write("FAIL ", prefix, failure.name, "\n  ", (message:gsub("\n", "\n  ")))
    io.stdout:write("\n  at ", trace.short_src or "?", ":", tostring(trace.currentline or "?"), "\n")
    io.stdout:flush()
  end

  local function on_start(element)
    record("start", handler.getFullName(element))
    return nil, true
  end

  local function on_end(element, _, status)
    record(words[status] or "fail", handler.getFullName(element))
    if status == "failure" then explain(handler.failures[#handler.failures]) end
    if status == "error" then explain(handler.errors[#handler.errors]) end
    return nil, true
  end

  -- Errors outside of a test: a spec file that does not load, a failing setup or teardown.
  local function on_error(element)
    if element.descriptor ~= "it" then
      local failure = handler.errors[#handler.errors]
      record("fail", failure.name or element.name or "load")
      explain(failure)
    end
    return nil, true
  end

  busted.subscribe({ "test", "start" }, on_start, { predicate = handler.cancelOnPending })
  busted.subscribe({ "test", "end" }, on_end, { predicate = handler.cancelOnPending })
  busted.subscribe({ "error" }, on_error)
  busted.subscribe({ "failure" }, on_error)
  return handler
end
