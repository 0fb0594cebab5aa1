-- out_of_memory_spec.lua: where memory is out, programs get an error, and go on when there is some again: trainings, files, data sets,
-- texts, tables, records and pictures in a process whose allocator fails; threads that have none for their first call.
local support = require "spec.support.init"
local library = os.getenv("FLOWLUA_LIB")
local allocator = support.program:match("^(.*/)") .. "failing_memory.so"

local it_in_luajit = os.getenv "FLOW_SANITIZED" and pending or it      -- its allocator is another one

local function luajit(script, argument)
  return support.run(("LUA_PATH=%q LD_PRELOAD=%q FLOW_THREADS=1 luajit %q %q"):format(
    support.root .. "lua/?.lua;" .. support.root .. "lua/?/init.lua;;", allocator, script, argument))
end

describe("texts of the C API", function()
  it("are -1 long where memory is out, not empty", function()
    local flow = require "flow"
    local native = require "flow.ffi"
    local json, C = require "flow.json", native.C
    local root = native.out("flow_json")
    assert.equal(0, C.flow_json_parse('{"a":[1,2.5]}', 13, root))
    local dense = flow.layers.Dense(3, { kernel_constraint = "max_norm", kernel_initializer = "he_normal" })
    dense(flow.ones { 2, 2 })
    local schedule = flow.optimizers.schedules.CosineDecay(0.1, 10)
    local adam = flow.optimizers.Adam { learning_rate = schedule }
    local function choice(_, text, size) return C.flow_choice_config(C.FLOW_CHOICE_INITIALIZER, "he_normal", nil, text, size) end
    for name, case in pairs {
      json = { C.flow_json_print, root[0] }, layer = { C.flow_layer_config, dense._handle }, choice = { choice },
      schedule = { C.flow_schedule_config, schedule.handle }, optimizer = { C.flow_optimizer_config, adam.handle },
      constraint = { C.flow_variable_constraint, dense.kernel.handle },
    } do
      local f, handle = unpack(case)
      local text, failures = native.text(f, handle), 0
      assert.truthy(json.decode(text))
      for after = 0, 500 do
        C.flow_fail_allocation(after)
        local length = f(handle, nil, 0)
        C.flow_fail_allocation(-1)
        if length >= 0 then
          assert.equal(#text, length, name)
          break
        end
        failures = failures + 1
        assert.truthy(native.string(C.flow_last_error()):find "^out of memory", name)
      end
      assert.truthy(failures > 0, name)
      C.flow_fail_allocation(0)                -- native.text tries again
      local again = native.text(f, handle)
      C.flow_fail_allocation(-1)
      assert.equal(text, again)
    end
    C.flow_json_release(root[0])
  end)
end)

describe("a file that cannot be read", function()
  it("is not one that is not there: checkpoints do not begin anew, and logs are not written over", function()
    local flow = require "flow"
    local folder = support.folder()
    local function loop(name) os.execute(("ln -s %q %q"):format(name, folder .. "/" .. name)) end
    loop "checkpoint"
    loop "log.csv"
    local checkpoint = flow.train.Checkpoint { counter = flow.Variable(0) }
    assert.truthy(support.message_of(function()
      return flow.train.CheckpointManager(checkpoint, { directory = folder }):restore_or_initialize()
    end):find("cannot read " .. folder .. "/checkpoint", 1, true))
    local logger = flow.callbacks.CSVLogger(folder .. "/log.csv")
    assert.truthy(support.message_of(function() logger:set_state { keys = {}, before = 5, written = "" } end):find("cannot read ", 1, true))
  end)
end)

describe("a host without memory", function()
  it_in_luajit("gets an error from each call that needs some, and goes on with it", function()
    local folder = support.folder()
    local text, code = luajit(support.root .. "spec/support/failing_memory.lua", folder)
    assert.equal(0, code, text)
    local lines = 0
    for line in text:gmatch "[^\n]+" do
      assert.truthy(line:find "\twhole$", line)
      lines = lines + 1
    end
    assert.equal(18, lines, text)
  end)

  it_in_luajit("gets the message of a thread whose first call fails", function()
    local script = support.file("thread.lua", [[
      local ffi = require "ffi"
      ffi.cdef [=[
        int failing_memory_thread(int (*call)(int), const char *(*message)(void), char *text, int size);
        int flow_set_threads(int count);
        const char *flow_last_error(void);
      ]=]
      local library, text = ffi.load(arg[1]), ffi.new("char[1024]")
      print(ffi.C.failing_memory_thread(library.flow_set_threads, library.flow_last_error, text, 1024), ffi.string(text))
      print(("%q"):format(ffi.string(library.flow_last_error())))      -- of the thread that has made no mistake
    ]])
    local text, code = luajit(script, library)
    assert.equal(0, code, text)
    assert.truthy(text:find '^1\tthe number of threads is %-1; it must be 1 to %d+, or 0 for one per core\n""\n$', text)
  end)
end)
