-- cli/submit.lua: flowlua submit NAME --config config.yaml --backend kubernetes train.lua -- ARGS: checks a training job, writes it for
-- what is to run it, and hands it over where the client is there.

local flags = require "flow.jobs.flags"
local submission = require "flow.jobs.submission"

local USAGE = [=[
Usage: flowlua submit NAME [flags] [script.lua | -m MODULE] [-- arguments of the script]

Reads a training job from --config (trainingInput: of AI Platform, or workerPoolSpecs: of Vertex AI; YAML or JSON) and from flags, which
override it, checks it, and writes it for a back end. Every finding names its line. The exit code is 1 if there is an error, else that of
the client.

  --config FILE            the job
  --backend NAME           local (this machine, in the background), compose, kubernetes, kubeflow, slurm, vertex, ai-platform, pai-dlc;
                           without it the service whose form the file has, for which files are written only, and local without a file
  --dry-run                prints what would be written
  --no-submit              writes it, and does not call the client
  --output-dir DIR         where to (by default below ~/.local/state/flowlua/jobs)
  --stream-logs            shows what the tasks say until the job ends
  --write-dockerfile       writes a Dockerfile for the program and what it requires, and says how to build and push it; --base-image IMAGE
  --engine ring | mpi      how the workers find each other (ring)

The job (gcloud's names; roles are master, worker, parameter-server and evaluator; each field of trainingInput is a flag, too):
  --scale-tier custom  --region us-central1  --job-dir gs://BUCKET/FOLDER  --ROLE-machine-type n1-standard-8  --ROLE-count N
  --ROLE-accelerator count=4,type=nvidia-tesla-t4  --ROLE-image-uri IMAGE  --labels a=b,c=d  --service-account NAME  --network NAME
  --max-running-time 2h  --use-chief-in-tf-config  --enable-web-access  --kms-key NAME

What runs it:
  --image IMAGE            for roles without one              --env NAME=VALUE           may come several times
  --mount /DIR:/PATH       nfs://SERVER/DIR:/PATH, gs://BUCKET[:/PATH], pvc:CLAIM:/PATH; :ro for read only; several times
  --credentials FILE       a service account's key            --git-url URL --git-branch NAME --git-commit ID --git-path /PATH
                           a token for it is read from the variable GIT_TOKEN
  --package-path DIR       sends the program and the modules that it requires from there; with --module-name trainer.task or a script;
                           --staging-bucket gs://BUCKET is where Vertex AI finds them
  --cpus N --memory 16Gi   for each task                      --shm-size 1Gi             shared memory of a container
  --restart-policy NAME    Never, OnFailure ...               --max-restarts N           (3)
  --port N  --threads N    --namespace NAME  --partition NAME  --kubeflow-kind TFJob | MPIJob  --project NAME
  --workspace-id ID  --ecs-spec NAME  --resource-id ID  --code-source-id ID      of PAI-DLC
  --help                   this text]=]

local Refusal = { __tostring = function(refusal) return refusal.text end }

local function run(arguments)
  local parsed = flags.parse(arguments)
  if parsed.options.help then
    print(USAGE)
    return 0
  end
  if parsed.options.write_dockerfile then
    for _, line in ipairs(submission.write_dockerfile(parsed)) do print(line) end
    return 0
  end
  local job, report = submission.read(parsed)
  for _, line in ipairs(report:lines()) do io.stderr:write(line .. "\n") end
  if report.errors > 0 then
    local text = ("%d error%s, nothing was submitted"):format(report.errors, report.errors == 1 and "" or "s")
    error(setmetatable({ text = text }, Refusal), 0)
  end
  if parsed.options.dry_run then
    io.write(submission.preview(job))
    return 0
  end
  local result = submission.run(job)
  if result.submitted and parsed.options.stream_logs then return require "flow.cli.jobs"(nil, { "logs", "-f", job.name }) end
  return result.code
end

return function(_, arguments)
  local ok, result = pcall(run, arguments)
  if ok then return result end
  io.stderr:write("flowlua submit: " .. tostring(result) .. "\n")
  return 1
end
