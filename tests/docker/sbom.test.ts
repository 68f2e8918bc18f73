/** The bill of materials against CycloneDX's own schema and the lockfile; the provenance against the files that it names. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';

const run = promisify(execFile);
const json = <T>(path: string) => JSON.parse(readFileSync(path, 'utf8')) as T;

interface Component {
  readonly 'bom-ref': string;
  readonly name: string;
  readonly purl: string;
  readonly hashes: readonly { alg: string; content: string }[];
  readonly properties: readonly { value: string }[];
}
interface Bill {
  readonly serialNumber: string;
  readonly components: Component[];
  readonly dependencies: { ref: string; dependsOn: string[] }[];
}
interface Statement {
  readonly _type: string;
  readonly subject: readonly { name: string; digest: Record<string, string> }[];
  readonly predicateType: string;
  readonly predicate: {
    buildDefinition: {
      buildType: string;
      externalParameters: object;
      resolvedDependencies: { name?: string; uri?: string; digest: Record<string, string> }[];
    };
    runDetails: { builder: { id: string }; metadata: Record<string, string> };
  };
}

const { packages } = json<{ packages: Record<string, { version: string; dev?: boolean; integrity?: string }> }>(
  'package-lock.json',
);
const directory = mkdtempSync(join(tmpdir(), 'release-'));
let names: string[];
let bill: Bill;

before(async () => {
  const words = ['docker/provenance.mjs', directory, '--as-built', '--builder', 'https://ci.example/builder'];
  names = (await run(process.execPath, words)).stdout.trim().split('\n');
  bill = json(names[1]!);
});
after(() => rmSync(directory, { recursive: true, force: true }));

const ajv = new Ajv({ strict: false, allErrors: true });
addFormats.default(ajv);
for (const format of ['iri-reference', 'idn-email']) ajv.addFormat(format, true);
// By the names that the schema calls them.
for (const name of ['spdx', 'jsf-0.82'])
  ajv.addSchema(
    json<object>(`tests/fixtures/cyclonedx/${name}.schema.json`),
    `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`,
  );
const isValid = ajv.compile(json<object>('tests/fixtures/cyclonedx/bom-1.6.schema.json'));

test('the bill of materials is CycloneDX 1.6, and the schema refuses an invalid one', () => {
  isValid(bill);
  assert.deepEqual(isValid.errors, null);
  const [first, ...others] = bill.components;
  for (const change of [
    { type: 'package' },
    { licenses: [{ license: { id: 'Free' } }] },
    { hashes: [{ alg: 'SHA-512', content: 'no hex' }] },
  ])
    assert.equal(isValid({ ...bill, components: [{ ...first, ...change }, ...others] }), false, JSON.stringify(change));
});

test("the bill has each shipped package with the lockfile's digest, and none of development alone", () => {
  const purls = new Set(bill.components.map(({ purl }) => purl));
  assert.equal(purls.size, bill.components.length);
  for (const [path, { version, dev, integrity }] of Object.entries(packages)) {
    if (path === '' || dev === true) continue;
    const name = path.slice(path.lastIndexOf('node_modules/') + 13);
    const found = bill.components.find(({ purl }) => purl === `pkg:npm/${name.replace('@', '%40')}@${version}`);
    const { content } = found!.hashes[0]!;
    assert.ok(integrity!.includes(Buffer.from(content, 'hex').toString('base64')), path);
  }
  const names = bill.components.map(({ purl }) => purl.replace(/@[^@]*$/, ''));
  for (const name of ['typescript', '%40biomejs/biome', 'vite', 'openai'])
    assert.ok(!names.includes(`pkg:npm/${name}`), name);
  // The pages are built of packages that no installation has.
  for (const name of ['react-dom', '%40mantine/core', '%40fontsource-variable/inter'])
    assert.ok(names.includes(`pkg:npm/${name}`), name);
});

test('the dependencies of each component are listed by existing names', () => {
  const refs = new Set(bill.dependencies.map(({ ref }) => ref));
  assert.equal(refs.size, bill.components.length + 1);
  for (const { dependsOn } of bill.dependencies) for (const ref of dependsOn) assert.ok(refs.has(ref), ref);
  const reached = new Set<string>(['pkg:npm/model-gateway@0.1.0']);
  for (const ref of reached)
    for (const next of bill.dependencies.find((each) => each.ref === ref)!.dependsOn) reached.add(next);
  assert.deepEqual(
    [...refs].filter((ref) => !reached.has(ref)),
    [],
  );
});

test('the same lockfile gives the same bill', async () => {
  assert.deepEqual(JSON.parse((await run(process.execPath, ['docker/sbom.mjs'])).stdout), bill);
});

test("the provenance is an in-toto statement with SLSA's predicate about the files beside it", async () => {
  const statement = json<Statement>(names[2]!);
  assert.deepEqual(
    [statement._type, statement.predicateType],
    ['https://in-toto.io/Statement/v1', 'https://slsa.dev/provenance/v1'],
  );
  assert.deepEqual(
    statement.subject.map(({ name }) => join(directory, name)),
    names.slice(0, 2),
  );
  for (const { name, digest } of statement.subject)
    for (const [algorithm, value] of Object.entries(digest))
      assert.equal(
        value,
        createHash(algorithm)
          .update(readFileSync(join(directory, name)))
          .digest('hex'),
        name,
      );
  const { buildDefinition, runDetails } = statement.predicate;
  assert.match(buildDefinition.buildType, /^urn:/);
  assert.ok(Object.keys(buildDefinition.externalParameters).length > 0);
  assert.equal(runDetails.builder.id, 'https://ci.example/builder');
  assert.match(runDetails.metadata['startedOn']!, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  const [source, lockfile, ...others] = buildDefinition.resolvedDependencies;
  const { stdout } = await run('git', ['rev-parse', 'HEAD']);
  assert.deepEqual(source!.digest, { gitCommit: stdout.trim() });
  assert.equal(
    lockfile!.digest['sha256'],
    createHash('sha256').update(readFileSync('package-lock.json')).digest('hex'),
  );
  assert.deepEqual(
    others.map(({ uri }) => uri),
    bill.components.map(({ purl }) => purl),
  );
});
