/**
 * `npm run provenance -- [DIRECTORY] [--builder URI]`: packs the program into the directory (`release` by default), and writes beside it its bill of
 * materials and an in-toto statement with SLSA provenance: which commit, lockfile, Node and packages it was made of. Nothing is signed.
 */
import { execFileSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { billOfMaterials } from './sbom.mjs';

const root = fileURLToPath(new URL('../', import.meta.url));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    builder: { type: 'string', default: 'urn:model-gateway:builder:unnamed' },
    // Packs what an earlier `npm run build` has made.
    'as-built': { type: 'boolean', default: false },
  },
});
const [directory = 'release'] = positionals;
const run = (program, ...words) =>
  execFileSync(program, words, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
const digest = (algorithm, path) => createHash(algorithm).update(readFileSync(path)).digest('hex');

const startedOn = new Date().toISOString();
mkdirSync(directory, { recursive: true });
if (!values['as-built']) run('npm', 'run', 'build');
const filename = run(process.execPath, 'docker/manifest.mjs', 'pack', resolve(directory)).trim();
const materials = billOfMaterials();
const sbom = filename.replace(/\.tgz$/, '.cdx.json');
const statement = filename.replace(/\.tgz$/, '.intoto.json');
write(sbom, materials);
write(statement, {
  _type: 'https://in-toto.io/Statement/v1',
  subject: [filename, sbom].map((name) => ({ name, digest: digests(join(directory, name)) })),
  predicateType: 'https://slsa.dev/provenance/v1',
  predicate: {
    buildDefinition: {
      buildType: 'urn:model-gateway:build:npm-pack:v1',
      externalParameters: { source: source(), command: ['npm', 'run', 'package'] },
      internalParameters: { node: process.version, platform: `${process.platform}-${process.arch}`, clean: isClean() },
      resolvedDependencies: [
        { name: 'source', uri: source(), digest: { gitCommit: run('git', 'rev-parse', 'HEAD').trim() } },
        { name: 'package-lock.json', digest: { sha256: digest('sha256', join(root, 'package-lock.json')) } },
        ...materials.components.map(({ purl, hashes = [] }) => ({
          uri: purl,
          digest: Object.fromEntries(hashes.map(({ alg, content }) => [alg.replace('-', '').toLowerCase(), content])),
        })),
      ],
    },
    runDetails: {
      builder: { id: values.builder },
      metadata: { invocationId: `urn:uuid:${randomUUID()}`, startedOn, finishedOn: new Date().toISOString() },
    },
  },
});
console.log([filename, sbom, statement].map((name) => join(directory, name)).join('\n'));

function write(name, value) {
  writeFileSync(join(directory, name), `${JSON.stringify(value, undefined, 2)}\n`);
}

function digests(path) {
  return { sha256: digest('sha256', path), sha512: digest('sha512', path) };
}

/** Where the commit can be had; without an account or password that the address may have. */
function source() {
  try {
    return `git+${run('git', 'remote', 'get-url', 'origin')
      .trim()
      .replace(/\/\/[^/@]*@/, '//')}`;
  } catch {
    return 'git+file:///';
  }
}

/** Whether the commit is all that was packed. */
function isClean() {
  return run('git', 'status', '--porcelain').trim() === '';
}
