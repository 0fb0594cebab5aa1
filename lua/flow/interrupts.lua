-- interrupts.lua: ways to interrupt work: Ctrl-C and SIGTERM in the flowlua program, flow_interrupt and flow_preempt of a host. These are
-- functions of flow.ffi.
--
-- Values in the registry pass between this file and the program, whose signal handlers set the flags (bindings/cli/main.c):
-- flowlua.defer_interrupts, true while a loop looks at the flags itself, so that the program's hook does not raise; flowlua.cut, see
-- note_cut. flowlua.arm_interrupt is of this file: the flag was lowered within such a loop, and the handler is armed again when the loop
-- has ended.

local registry = debug.getregistry()

-- between: of ffi.lua.
return function(native, between)
  local C = native.C

  -- While f runs, Ctrl-C in the flowlua program only raises the flag of native.interrupted(), SIGTERM the one of native.preempted();
  -- otherwise they raise an error at the next line of Lua. fit uses this to stop between two batches. An interrupt that f did not clear is
  -- raised after it, and so is SIGTERM.
  function native.defer_interrupts(f, ...)
    local before = registry["flowlua.defer_interrupts"]
    local function finish(ok, ...)
      registry["flowlua.defer_interrupts"] = before
      local interrupted, preempted = ok and not before and native.interrupted(), ok and not before and native.preempted()
      if not before and (interrupted or registry["flowlua.arm_interrupt"]) then native.clear_interrupt() end
      if not ok then error((...), 0) end
      if preempted then native.raise_interrupted("this process was asked to end") end
      if interrupted then native.raise_interrupted("interrupted") end
      return ...
    end
    return finish(pcall(between, function() registry["flowlua.defer_interrupts"] = true end,
      function() registry["flowlua.defer_interrupts"] = before end, f, ...))
  end

  -- An interrupt ended a fit early, which then returned as always: a script goes on, and the flowlua program ends with exit code 130.
  function native.note_cut() registry["flowlua.cut"] = true end

  -- Whether this process is to end soon (flow_preempt; SIGTERM in the flowlua program), which loops over batches look at.
  function native.preempted()
    return C.flow_preempted(native.context) ~= 0
  end

  -- Whether the flag of an interrupt is up (flow_interrupt; Ctrl-C in the flowlua program).
  function native.interrupted()
    return C.flow_interrupted(native.context) ~= 0
  end

  -- Lowers the flag; in the flowlua program the next Ctrl-C interrupts again instead of ending the program, but while interrupts are
  -- deferred the second one still ends it: what follows a stopped fit (saving, validating) may take long.
  function native.clear_interrupt()
    C.flow_interrupt(native.context, 0)
    local deferred = registry["flowlua.defer_interrupts"]
    registry["flowlua.arm_interrupt"] = deferred or nil
    if native.arm_interrupt and not deferred then native.arm_interrupt() end
  end
end
