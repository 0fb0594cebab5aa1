-- cli_spec.lua: the flowlua program: scripts, options, the prompt, doctor, exit codes, Ctrl-C.
local support = require "spec.support.init"

local file = io.open(support.program, "rb")
if file then file:close() end
local program = support.command
local run = support.run
local repl = require "flow.repl"
local flow = require "flow"

describe("flowlua", function()
  it("exists", function() assert.is_truthy(file, support.program .. " was not built") end)

  it("runs a script with its arguments", function()
    local script = support.file("script.lua",
      'print(arg[0]:match("[^/]*$"), #arg, arg[2], ...) print((require "flow").ones({2}):sum():item())')
    local output, code = run(program .. " " .. script .. " a --b")
    assert.equal("script.lua\t2\t--b\ta\t--b\n2\n", output)
    assert.equal(0, code)
  end)

  it("runs code, modules and standard input", function()
    assert.equal("3\n", (run(program .. " -e 'print(1 + 2)'")))
    assert.equal("function\n", (run(program .. " -l flow -e 'print(type(flow.tensor))'")))
    assert.equal("4\n", (run(program .. " -e 'print(flow.ones{2, 2}:sum():item())'")))
    assert.equal("x\ty\n", (run("echo 'print(...)' | " .. program .. " - x y")))
    local module = support.file("task.lua", "print('task', ...)")
    local folder = module:match("^(.*)/")
    assert.equal("task\t1\n", (run("cd " .. folder .. " && " .. program .. " -m task 1")))
  end)

  it("tells its version and its usage", function()
    assert.truthy(run(program .. " -v"):find("^flowlua " .. flow.version:gsub("%.", "%%.") .. " %(LuaJIT 2%.1"))
    local output, code = run(program .. " --help")
    assert.truthy(output:find("^Usage: flowlua"))
    assert.equal(0, code)
  end)

  it("measures kernels, all variants of each, and names what it does not know", function()
    local output, code = run(program .. " bench --ops --net=odd --op=convolution")
    assert.equal(0, code)
    assert.truthy(output:find("peak %d+%.%d GFLOP/s"))
    assert.truthy(output:find("\nconvolution +[* ]direct +[%d.]+ +[%d.]+ +%d+ %%  {19, 37, 37, 3} {3, 3, 3, 17} {17}"))
    assert.truthy(output:find("\nconvolution +plain"))
    output, code = run(program .. " bench --net=od 2>&1")
    assert.equal(1, code)
    assert.truthy(output:find('there is no net "od"', 1, true))
    output = run(program .. " bench --ops --op matmull 2>&1")
    assert.equal('flowlua: bench: --op: there is no op "matmull"; did you mean "matmul"?\n', output)
    output, code = run(program .. " bench --ops --net mlp --op cumsum 2>&1")
    assert.equal(1, code)
    assert.truthy(output:find("bench: --op cumsum: no training step of mlp has it", 1, true), output)
  end)

  it("describes saved models and asks them about pictures", function()
    local layers = flow.layers
    local model = flow.Sequential { layers.Input { 8, 9, 3 }, layers.Rescaling(1 / 255), layers.GlobalAveragePooling2D(),
                                    layers.Dense(3, { activation = "softmax", kernel_initializer = "ones" }) }
    model:get_layer("dense").bias:assign { 0, 2, 1 }
    local path = support.file("m.keras", "")
    local folder = path:match("^(.*)/")
    model:save(path)
    flow.image.save(folder .. "/red.png", flow.full({ 20, 10, 3 }, 100, { dtype = "uint8" }))
    local output, code = run(program .. " summary " .. path)
    assert.equal(0, code, output)
    assert.truthy(output:find("Total params: 12", 1, true), output)
    output, code = run(("%s predict %s %s/red.png --classes rose,tulip,daisy --top 2"):format(program, path, folder))
    assert.equal(0, code, output)
    assert.truthy(output:find("red.png: tulip 0.6652, daisy 0.2447\n", 1, true), output)
    output = run(("%s predict %s %s/red.png --classes rose,tulip"):format(program, path, folder))
    assert.truthy(output:find("there are 2 names of classes for 3 outputs", 1, true), output)
  end)

  it("ends with 1 and a traceback when a script fails", function()
    local script = support.file("bad.lua",
      "local flow = require 'flow'\nlocal function f() local x = flow.ones({2}).shpe return x end\nf()\n")
    local output, code = run(program .. " " .. script)
    assert.equal(1, code)
    assert.truthy(output:find('bad.lua:2: a tensor has no field "shpe"; did you mean "shape"?', 1, true), output)
    assert.truthy(output:find("bad.lua:3:", 1, true), output)
    assert.falsy(output:find("cli/main.lua", 1, true), output)
  end)

  it("does at its end what modules asked for, and tells them whether the script failed", function()
    local add = 'require("flow.at_exit").add({}, function(orderly) print("end", orderly) end) '
    assert.equal("1\nend\ttrue\n", (run(program .. " -e '" .. add .. "print(1)'")))
    assert.equal("end\ttrue\n", (run(program .. " -e '" .. add .. "os.exit(0)'")))
    local output, code = run(program .. " -e '" .. add .. "os.exit(3)'")
    assert.same({ "end\tfalse\n", 3 }, { output, code })
    local script = support.file("fails.lua", add .. 'error("wrong")')
    assert.truthy(run(program .. " " .. script):find("end\tfalse\n", 1, true))
  end)

  it("says what is wrong with its own command line", function()
    local output, code = run(program .. " nowhere.lua")
    assert.equal("flowlua: cannot open nowhere.lua: No such file or directory\n", output)
    assert.equal(1, code)
    output, code = run(program .. " --frobnicate")
    assert.equal("flowlua: unknown option --frobnicate; flowlua --help shows what there is\n", output)
    assert.equal(1, code)
    assert.equal("flowlua: -e needs code\n", (run(program .. " -e")))
  end)

  it("ends well when a script prints its --help", function()
    local script = support.file("help.lua", "require('flow').args { epochs = 3 } print('not reached')")
    local output, code = run(program .. " " .. script .. " --help")
    assert.truthy(output:find("^Usage: .*help%.lua %[options%]\n  %-%-epochs NUMBER"), output)
    assert.falsy(output:find("not reached", 1, true))
    assert.equal(0, code)
  end)

  it("doctor reports and tests itself", function()
    assert.equal('flowlua: doctor takes no arguments, got "x"; flowlua doctor --help shows what there is\n', (run(program .. " doctor x")))
    local output, code = run(program .. " doctor")
    assert.equal(0, code)
    for _, word in ipairs { "flowlua", "library", "LuaJIT", "kernels", "threads", "devices      cpu:0", "a matrix product is right" } do
      assert.truthy(output:find(word, 1, true), word)
    end
    assert.truthy(output:find("\ncuda +training on NVIDIA GPUs: CUDA runtime") or output:find("libflow_cuda.so", 1, true))
    assert.truthy(output:find("\nimage        JPEG and GIF images: libjpeg") or output:find("libflow_image.so", 1, true))
  end)

  it("doctor warns of a LuaJIT that may miscompile", function()
    local as_if = [[%s -e 'jit.version, jit.arch, jit.prngstate = "LuaJIT 2.1.0-beta3", "x64", %s os.exit(require("flow.cli.doctor")())']]
    assert.truthy(run(as_if:format(program, "nil")):find("may miscompile loops over pairs()", 1, true))
    assert.falsy(run(as_if:format(program, "print")):find("miscompile", 1, true))
  end)

  it("is interrupted by SIGINT with code 130", function()
    -- In the foreground: else timeout signals its whole group as well, and the second signal kills.
    local script = support.file("loop.lua",
      "local flow = require 'flow' local a = flow.ones{64, 64} print('go') while true do a = a * 1 end")
    local output, code = run(("timeout --foreground --signal=INT 1 env %s %s; test $? -eq 124"):format(program, script))
    assert.equal("go\nflowlua: interrupted\n", output)
    assert.equal(0, code)
  end)

  it("is a prompt with -i", function()
    local output = run(("printf '1+1\\nx = {1, 2}\\nx\\nfor i = 1, 2 do\\nprint(i) end\\nflow.nope\\n7;\\n_\\n' | %s -i"):format(program))
    assert.equal('2\n{ 1, 2 }\n1\n2\nstdin:1: flow has no field "nope"\n7\n', output)
  end)
end)

describe("the prompt", function()
  it("knows when input is not complete", function()
    local chunk, more = repl.compile("for i = 1, 2 do")
    assert.is_nil(chunk)
    assert.is_true(more)
    chunk, more = repl.compile("x = = 1")
    assert.is_nil(chunk)
    assert.is_false(more)
    assert.equal(3, repl.compile("1 + 2")())
    local shown_by = { ["return 1, nil"] = "1\tnil", ["local a = 2 return a"] = "2", ["local b = 2 return b;"] = "", ["b = 3"] = "" }
    for text, shown in pairs(shown_by) do
      local lines = {}
      local of_text, prints = repl.compile(text)
      assert.is_true(repl.evaluate(of_text, prints, function(line) lines[#lines + 1] = line end))
      assert.equal(shown, table.concat(lines), text)
    end
    for _, begun in ipairs { "1 +", "{ 1,", "{", "function()", "not", '"a" ..', "flow.ones { 2 } *" } do
      chunk, more = repl.compile(begun)
      assert.is_nil(chunk)
      assert.is_true(more, begun)
    end
    for _, wrong in ipairs { "1 + )", "x y", "f() end", "return 1 end", "{ 1, } }", "1 +;", "5 = x" } do
      assert.is_false((select(2, repl.compile(wrong))), wrong)
    end
  end)

  it("shows tables with their content", function()
    assert.equal('{ 1, "a", x = { true } }', repl.show { 1, "a", x = { true } })
    assert.equal("{}", repl.show {})
    local loop = {}
    loop[1] = loop
    assert.equal("{ {...} }", repl.show(loop))
    assert.equal("text", repl.show("text"))
    assert.equal("{\n  Tensor float32 {1} cpu\n[1.]\n}", repl.show { flow.ones { 1 } })
  end)

  it("completes names of tables and of tensors", function()
    _G.completed = flow.ones { 1 }
    assert.same({ "completed:reshape" }, repl.complete("completed:resh"))
    _G.completed = nil
    assert.same({ "string.format" }, repl.complete("string.form"))
    assert.same({}, repl.complete("nowhere.x"))
  end)
end)
