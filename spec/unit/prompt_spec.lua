-- prompt_spec.lua: a session of 60 entries at the prompt, on a terminal, with libedit and without it: values, help, errors, completion,
-- interrupts, plots, colours.
local support = require "spec.support.init"
local terminal = require "spec.support.terminal"
local flow = require "flow"

local loop = require "flow.repl.loop"
local PROMPT = "\n> $"

-- { entry, a text that the answer has, ... }; a text in { } is one that it does not have.
local SESSION = {
  { "1 + 1", "\n2\n" },
  { "= 5", "\n5\n" },
  { "7;", { "\n7\n" } },
  { "_", "\n7\n" },
  { "'text'", "\ntext\n" },
  { "nil", "\nnil\n" },
  { "2, 3", "\n2\t3\n" },
  { "x = { 1, 2, name = 'a' }", { "table" } },
  { "x", '{ 1, 2, name = "a" }' },
  { "y", 'stdin:1: y is not defined' },
  { "foor = 1", { "error" } },
  { "fooor", 'stdin:1: fooor is not defined; did you mean "foor"?' },
  { "local q = 3", { "stdin" } },
  { "q", "stdin:1: q is not defined: it was local to an earlier entry; write it without local to keep it" },
  { "zeros", "zeros is not defined; flow has it: flow.zeros" },
  { "maybe = nil", { "not defined" } },
  { "maybe", "\nnil\n" },
  { "for i = 1, 2 do\nprint('i', i)\nend", "i\t1\ni\t2\n" },
  { "x = = 1", "unexpected symbol near '='" },
  { "t = flow.tensor { { 1, 2 }, { 3, 4 } }", { "Tensor" } },
  { "t", "Tensor float32 {2, 2} cpu", "min 1, max 4, mean 2.5, std 1.118" },
  { "flow.tensor({ 1, 0 }, { dtype = 'bool' })", "Tensor bool {2} cpu", { "min 1" } },
  { "flow.tensor { 1, 0 / 0 }", "1 not finite" },
  { "t.shpe", 'a tensor has no field "shpe"; did you mean "shape"?' },
  { "t:matmul(t):item()", "item()" },
  { "layers = flow.layers", { "table" } },
  { "layers", "flow.layers: Activation, Add," },
  { "layers.Dense", "flow.layers.Dense(units, activation = \"linear\"", "activation(x . kernel + bias) over the last axis." },
  { "flow.zeros", "flow.zeros(shape..., { dtype, device })", "A tensor of zeros" },
  { "flow.keras", "flow.keras: " },
  { "flow.zerros { 1 }", 'flow has no field "zerros"; did you mean "zeros"?' },
  { "m = flow.Sequential { layers.Input { 3 }, layers.Dense(2, { kernel_initializer = 'ones' }) }", { "Sequential" } },
  { "m", "Layer (type)", "Total params: 8" },
  { "m.layers[1]", 'Dense "dense', "8 parameters" },
  { "flow.Sequential { layers.Dense(1) }", "1 layer, not built" },
  { "m:compile { loss = 'mse', optimizer = 'sgd' }", { "nil" } },
  { "m.fit(t)", "fit is a method, it was called with a dot: write model:fit(...), with a colon" },
  { "m:fit(t)", "stdin:1: ", { "lua/flow" } },
  { "h = m:fit(flow.zeros { 4, 3 }, flow.ones { 4, 2 }, { epochs = 12, verbose = 0 })", { "History" } },
  { "h", "History of 12 epochs", "  epoch      loss\n      0         1\n", "    ...\n" },
  { "h:plot()", "loss", { "\n    │.*\n    │.*loss.*\n    │" } },
  { "ds = flow.data.Dataset.from_tensor_slices { flow.zeros { 4, 3 }, flow.ones { 4 } }", { "Dataset" } },
  { "ds", "Dataset (float32 {3}, float32 {}), 4 elements" },
  { "ds:repeat_()", "repeats without end" },
  { "function f() error('bad') end", { "bad" } },
  { "function g() f() return 1 end", { "bad" } },
  { "g()", "stdin:1: bad\nstack traceback:\n\tstdin:1: in function 'f'\n\tstdin:1: in function 'g'\n\tstdin:1: in main chunk",
    { "[C]", "lua/flow" } },
  { "error({})", "an error that is not text: {}" },
  { "who()", "ds  ", "Dataset", "f   ", "t   ", "Tensor float32 {2, 2} cpu", { "who", "layers._" } },
  { "time(function() return 42 end)", "of %d+ calls\n42\n" },
  { "time(5)", "time takes a function, got the number 5" },
  { "?flow.zeros", "flow.zeros(shape..., { dtype, device })", "Example:" },
  { "?model:fit", "model:fit(x, y, batch_size, epochs = 1", "validation_split = 0: a number" },
  { "? m", "flow.Sequential(layers" },
  { "help 'Adam'", "flow.optimizers.Adam(learning_rate = 0.001" },
  { "help(layers)", "flow.layers: Activation" },
  { "?nothing_like_this", 'there is no help for "nothing_like_this"', { "stdin" } },
  { "help()", "help(flow.layers)     the names of a module" },
  { "string.rep('ab', 3)", "ababab" },
  { "print(type(flow), _ == 'ababab')", "table\ttrue" },
}

-- Plays the session, raw with libedit; returns the entries whose answers are not as they should be.
local function play(at, raw)
  local wrong = {}
  at:wait_for_prompt("> $", raw)
  for i, entry in ipairs(SESSION) do
    at:send(("%s\nprint('#' .. %d)\n"):format(entry[1], i))      -- so that the end of the answer is seen
    local answer = at:wait_for_prompt(("#%d%s"):format(i, PROMPT), raw)
    for j = 2, #entry do
      local wanted = entry[j]
      for _, text in ipairs(type(wanted) == "table" and wanted or { wanted }) do
        local found = answer:find(text, 1, true) ~= nil or text:find("%%d") and answer:find(text) ~= nil
        local echo = answer:match("^[^\n]*\n") or ""
        if type(wanted) == "table" then found = answer:sub(#echo + 1):find(text, 1, true) ~= nil end
        if found == (type(wanted) == "table") then
          wrong[#wrong + 1] = ("%s\n  %s %q\n  answer: %s"):format(entry[1], type(wanted) == "table" and "has" or "lacks", text, answer)
        end
      end
    end
  end
  return table.concat(wrong, "\n")
end

local home = support.folder()
local ENVIRONMENT = { TERM = "xterm", HOME = home, XDG_STATE_HOME = false, NO_COLOR = "1", FLOWLUA_PATH = support.root .. "lua",
                      ASAN_OPTIONS = (os.getenv("ASAN_OPTIONS") or "") .. ":detect_leaks=0" }      -- libedit keeps its memory
local WITHOUT_LIBEDIT = { support.program, "-e", 'require("flow.ffi").other_library = function() end', "-i" }

local function with(changes)
  local environment = {}
  for name, value in pairs(ENVIRONMENT) do environment[name] = value end
  for name, value in pairs(changes) do environment[name] = value end
  return environment
end

local has_libedit = require("flow.repl.editor").available

describe("a session of " .. #SESSION .. " entries", function()
  it("is answered with libedit", function()
    if not has_libedit then return pending("libedit is not installed") end
    local at = terminal.open({ support.program }, ENVIRONMENT)
    assert.equal("", play(at, true))
    at:send("\4")
    assert.equal(0, (select(2, at:finish())))
  end)

  it("is answered without libedit", function()
    local at = terminal.open(WITHOUT_LIBEDIT, ENVIRONMENT)
    assert.equal("", play(at))
    at:send("\4")
    assert.equal(0, (select(2, at:finish())))
  end)
end)

describe("Ctrl-C at the prompt", function()
  for name, program in pairs { ["with libedit"] = { support.program }, ["without libedit"] = WITHOUT_LIBEDIT } do
    it("ends what runs, and the session goes on, " .. name, function()
      if name == "with libedit" and not has_libedit then return pending("libedit is not installed") end
      if os.getenv "FLOW_SANITIZED" == "thread" then return pending("ThreadSanitizer holds a signal back until libc is called") end
      local at, raw = terminal.open(program, ENVIRONMENT), name == "with libedit"
      at:wait_for_prompt("> $", raw)
      at:send("print('go') while true do end\n")
      at:wait("\ngo\n")
      at:send("\3")
      assert.truthy(at:wait_for_prompt(PROMPT, raw):find("interrupted", 1, true))
      at:send("for i = 1, 3 do\n")
      at:wait_for_prompt("\n>> $", raw)
      at:send("\3")
      at:wait_for_prompt(PROMPT, raw)
      at:send("6 * 7\n")
      assert.truthy(at:wait_for_prompt(PROMPT, raw):find("\n42\n", 1, true))
      at:send("\4")
      at:finish()
    end)
  end
end)

describe("colours", function()
  local function answer(changes)
    local at = terminal.open({ support.program }, with(changes))
    at:wait_for_prompt("> $", has_libedit)
    at:send("nowhere\n")
    local _, text = at:wait_for_prompt(PROMPT, has_libedit)
    at:send("\4")
    at:finish()
    return text
  end

  it("are there on a terminal, and not where NO_COLOR is set or the terminal is dumb", function()
    assert.truthy(answer({ NO_COLOR = false }):find("\27[31mstdin:1: nowhere is not defined\27[0m", 1, true))
    assert.falsy(answer({ NO_COLOR = "1" }):find("\27[31m", 1, true))
    assert.falsy(answer({ NO_COLOR = false, TERM = "dumb" }):find("\27[31m", 1, true))
  end)
end)

describe("Tab", function()
  if has_libedit then
    it("completes names, options and what stands in quotes", function()
      local at = terminal.open({ support.program }, ENVIRONMENT)
      at:wait_for_prompt("> $", true)
      at:send("flow.rando\t.norm\t { 2 }\n")
      assert.truthy(at:wait_for_prompt("Tensor.*" .. PROMPT, true):find("Tensor float32 {2} cpu", 1, true))
      at:send("layers = flow.layers print('ready')\n")
      at:wait_for_prompt("\nready" .. PROMPT, true)
      at:send("d = layers.Dense { 3, activati\t'tan\t' } print('made')\n")
      at:wait_for_prompt("\nmade" .. PROMPT, true)
      at:send("d:get_conf\t().activation\n")
      assert.truthy(at:wait_for_prompt("tanh" .. PROMPT, true):find("\ntanh\n", 1, true))
      at:send("\4")
      at:finish()
    end)
  end

  local complete = loop.complete
  _G.a_model = flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1) }
  _G.a_tensor, _G.a_dataset, _G.a_variable = flow.ones { 1 }, flow.data.Dataset.range(3), flow.Variable(1)
  require("flow.repl.complete").flow = flow
  local _ = flow.help      -- which knows flow from now on

  local function has(list, name)
    for _, entry in ipairs(list) do
      if entry == name then return true end
    end
    return false
  end

  it("knows methods after a colon, fields after a dot, and never what is private", function()
    local methods = complete "a_model:"
    for _, name in ipairs { "fit", "compile", "summary", "save", "predict", "get_layer", "add" } do
      assert.is_true(has(methods, "a_model:" .. name), name)
    end
    assert.is_false(has(methods, "a_model:layers"))
    assert.is_false(has(methods, "a_model:from_record"))
    assert.is_true(has(complete "a_model.", "a_model.layers"))
    assert.is_true(has(complete "a_dataset:", "a_dataset:batch"))
    assert.is_true(has(complete "a_tensor:", "a_tensor:reshape"))
    assert.is_true(has(complete "a_tensor.", "a_tensor.shape"))
    assert.is_true(has(complete "a_variable:", "a_variable:assign"))
    assert.is_true(has(complete "flow.callbacks.", "flow.callbacks.EarlyStopping"))
    assert.is_true(has(complete "flow.losses.", "flow.losses.Huber"))
    assert.is_true(has(complete "flow.", "flow.layers"))
    for _, word in ipairs { "a_model:", "a_model.", "a_dataset:", "a_dataset.", "a_tensor.", "a_variable.", "flow.", "flow.callbacks.",
                            "flow.layers.", "flow.layers.Dense.", "flow.distribute." } do
      for _, found in ipairs(complete(word)) do assert.falsy(found:find("[.:]_"), found) end
    end
  end)

  it("knows options, in a table and after positions", function()
    assert.same({ "kernel_constraint = ", "kernel_initializer = ", "kernel_regularizer = " }, complete("kernel_", "flow.layers.Dense { "))
    assert.same({ "epochs = " }, complete("epo", "a_model:fit(x, y, { batch_size = 3, "))
    assert.same({ "learning_rate = " }, complete("lear", "flow.optimizers.Adam({ "))
    assert.same({}, complete("no_such", "flow.layers.Dense { "))
  end)

  it("knows what stands in quotes: losses, metrics, optimizers, activations, paths", function()
    assert.is_true(has(complete("mean_sq", 'a_model:compile { loss = "'), "mean_squared_error"))
    assert.same({ "adam", "adamax", "adamw" }, complete("adam", 'a_model:compile { optimizer = "'))
    assert.is_true(has(complete("acc", 'a_model:compile { metrics = { "'), "accuracy"))
    assert.same({ "relu", "relu6" }, complete("rel", 'flow.layers.Dense(3, { activation = "'))
    local folder = support.folder()
    support.write(folder .. "/flowers.keras", "")
    assert.same({ folder .. "/flowers.keras" }, complete(folder .. "/flow", 'flow.load_model("'))
    assert.same({ folder .. "/" }, complete(folder, 'flow.load_model("'))
  end)

  it("knows the names of help, of globals and of keywords", function()
    assert.is_true(has(complete("?flow.layers.Conv2", ""), "?flow.layers.Conv2D"))
    assert.same({ "a_model", "a_monkey" }, complete("a_mo", "", { a_monkey = true }))
    assert.same({ "function" }, complete("func"))
    assert.same({}, complete("nowhere.x"))
    assert.same({ "string.format" }, complete("string.form"))
  end)
end)

describe("flow.repl", function()
  it("is a prompt inside of another program, by functions or files", function()
    local lines, shown = { "1 + 1", "hosted = 3", "hosted", "nowhere" }, {}
    flow.repl(function() return table.remove(lines, 1) end, function(text) shown[#shown + 1] = text end)
    assert.same({ "2", "3", "stdin:1: nowhere is not defined" }, shown)
    _G.hosted = nil
    local input = support.file("input", "40 + 2\n")
    local output = input .. ".out"
    local from, to = io.open(input), io.open(output, "w")
    flow.repl { input = from, output = to }
    to:close()
    assert.equal("42\n", support.read(output))
  end)

  it("refuses what is neither", function()
    assert.equal("flow.repl: input is a function(prompt) that returns a line or nil, or a file, got the number 5",
      support.message_of(function() flow.repl(5) end))
    assert.equal("flow.repl takes (input, output); the number 3 is one argument too many",
      support.message_of(function() flow.repl(print, print, 3) end))
  end)
end)
