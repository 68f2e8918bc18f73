/**
 * `npm run test:chart`: lints and renders the chart with each of its values files, validates what comes out against the schemas of the
 * oldest and the newest Kubernetes and by the API server's own code, and loads both compose files with the library that
 * `docker compose` is made of. Helm, the API server's code and the library are built through Go's module proxy, the schemas come from a
 * Python package; all are kept in the user's cache directory. Exit 77: a tool is neither installed nor to be had.
 */
import assert from 'node:assert/strict';
import { execFileSync, type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Document, parse, parseAllDocuments, stringify } from 'yaml';
import { gatewayService, settings } from './services.ts';
import { findComposeLoader, findHelm, findSchemas, findValidator } from './tools.ts';

const chart = 'docker/helm';
const newestKubernetes = '1.37';
/** What has no default. */
const required = ['--set', 'bucket.name=files'];

const draft = mkdtempSync(join(tmpdir(), 'chart-'));
process.once('exit', () => rmSync(draft, { recursive: true, force: true }));

// ---------------------------------------------------------------------------------------------------------------- chart

function tryChart(helm: string, schemas: string, validator: string): void {
  const { kubeVersion } = parse(readFileSync(join(chart, 'Chart.yaml'), 'utf8')) as { kubeVersion: string };
  const versions = [/^>=(\d+\.\d+)/.exec(kubeVersion)![1]!, newestKubernetes];
  const files = [join(chart, 'values.yaml'), ...globSync(`${chart}/ci/*.yaml`)];
  assert.ok(files.length > 1);
  const { config: defaultConfig } = parse(readFileSync(files[0]!, 'utf8')) as { config: string };
  let all = '';
  for (const file of files) {
    execFileSync(helm, ['lint', '--strict', '--quiet', chart, '--values', file, ...required], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    for (const version of versions) {
      const words = ['template', 'try', chart, '--values', file, '--kube-version', version, ...required];
      const manifests = execFileSync(helm, words, { encoding: 'utf8' });
      const { status, stdout, stderr } = fitsSchemas(manifests, version);
      assert.equal(status, 0, `${file}, Kubernetes ${version}: ${stdout}${stderr}`);
      refusesUnknown(manifests, version);
      const documents = parseAllDocuments(manifests);
      const { config = defaultConfig } = parse(readFileSync(file, 'utf8')) as { config?: string };
      for (const document of documents)
        if (document.get('kind') === 'ConfigMap') assert.equal(document.getIn(['data', 'gateway.yaml']), config, file);
      const kinds = documents.map((each) => String(each.get('kind')));
      console.log(`${file}: fits the schemas of Kubernetes ${version}: ${kinds.join(', ')}`);
      all += `\n---\n${manifests}`;
    }
  }
  acceptedByServer(all);
  refusesValues(helm);

  function fitsSchemas(manifests: string, version: string): SpawnSyncReturns<string> {
    const file = join(draft, 'manifests.yaml');
    writeFileSync(file, parseAllDocuments(manifests).filter(isBuiltIn).map(String).join('---\n'));
    return spawnSync(schemas, ['--strict', '--quiet', '-k', version, file], { encoding: 'utf8' });
  }

  /** Else that all fits would mean nothing. */
  function refusesUnknown(manifests: string, version: string): void {
    for (const [good, bad] of [
      ['whenUnsatisfiable:', 'whenUnsatisfied:'],
      ['terminationGracePeriodSeconds: ', 'terminationGracePeriodSeconds: soon # '],
      ['containerPort: 8080', 'containerPort: http'],
    ] as const)
      if (manifests.includes(good)) assert.notEqual(fitsSchemas(manifests.replace(good, bad), version).status, 0, bad);
  }

  function acceptedByServer(manifests: string): void {
    const requestOf = (input: string) => spawnSync(validator, { input, encoding: 'utf8' });
    const { status, stdout, stderr } = requestOf(manifests);
    assert.equal(status, 0, stdout + stderr);
    const results = new Map<string, number>();
    for (const [, kind, result] of stdout.matchAll(/^(\w+) \S+: (.+)$/gm))
      results.set(`${kind}: ${result}`, (results.get(`${kind}: ${result}`) ?? 0) + 1);
    console.log('by the API server and the Prometheus operator:');
    for (const [result, count] of results) console.log(`  ${count} ${result}`);
    for (const [good, bad] of serverRefuses) {
      assert.ok(good.test(manifests), String(good));
      assert.equal(requestOf(manifests.replace(good, bad)).status, 1, `${bad} is accepted`);
    }
  }
}

/** What fits the schemas and is wrong all the same. */
const serverRefuses: readonly (readonly [RegExp, string])[] = [
  [/runAsNonRoot: true/, 'runAsNonRoot: false'],
  [/allowPrivilegeEscalation: false/, 'allowPrivilegeEscalation: true'],
  [/name: http, containerPort/, 'name: the_port, containerPort'],
  [/mountPath: \/tmp/, 'mountPath: /data'],
  [/restartPolicy: Never/, 'restartPolicy: Always'],
  [/path: \/$/m, 'path: here'],
  [/operator: In, values/, 'operator: Exists, values'],
  [/cidr: 0\.0\.0\.0\/0/, 'cidr: 0.0.0.0/33'],
  [/maxReplicas: 40/, 'maxReplicas: 1'],
  [/expr: min by/, 'expr: min by by'],
  [/podMetricsEndpoints:/, 'podMetricEndpoints:'],
  [/interval: 30s/, 'intervall: 30s'],
];

/** Kinds that Kubernetes itself has. */
function isBuiltIn(document: Document): boolean {
  const [group, version] = String(document.get('apiVersion')).split('/');
  return version === undefined || !group!.includes('.') || group!.endsWith('.k8s.io');
}

function refusesValues(helm: string): void {
  const template = (...words: string[]) =>
    spawnSync(helm, ['template', 'try', chart, '--kube-version', newestKubernetes, ...words], { encoding: 'utf8' });
  assert.match(template().stderr, /bucket\.name is required/);
  for (const value of [
    ...['autoscaling.enable=true', 'replica=5', 'image.tag=20261122', 'service.port=http'],
    ...['migration.by=hook', 'image.digest=latest', 'extraEnv.NAME=value', 'metrics.podMonitor.interval=often'],
  ]) {
    const { status, stderr } = template('--set', value, ...required);
    assert.notEqual(status, 0, `${value} is accepted`);
    assert.match(stderr, /values don't meet the specifications of the schema/, value);
  }
  for (const [values, sentence] of [
    ['metrics.podMonitor.enabled=true,metrics.serviceMonitor.enabled=true', /scrape each pod twice/],
    ['metrics.enabled=false,metrics.prometheusRule.enabled=true', /nothing to scrape/],
  ] as const)
    assert.match(template('--set', values, ...required).stderr, sentence);
  // Values of a chart above this one, and of README.
  const { status, stderr } = template('--set', 'enabled=true,global.region=eu', ...required);
  assert.equal(status, 0, stderr);
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

tryChart(findHelm(), findSchemas(), findValidator());
tryCompose(findComposeLoader());
