/** `npm run sbom [-- FILE]`: the packages of the program, those that its web app is built of included, as CycloneDX 1.6, from the lockfile alone. */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
const hashNames = { sha1: 'SHA-1', sha256: 'SHA-256', sha384: 'SHA-384', sha512: 'SHA-512' };
const read = (path) => readFileSync(join(root, path));
const byRef = (one, other) => (one['bom-ref'] < other['bom-ref'] ? -1 : 1);

/** The same lockfile and build give the same bytes. */
export function billOfMaterials() {
  const lockfile = read('package-lock.json');
  const { packages } = JSON.parse(lockfile);
  const { name, version, license } = packages[''];
  // Written by the build of the web app: development packages whose code is in its pages.
  const inPages = JSON.parse(read('plugins/console/web/dist/.vite/packages.json'));
  const isShipped = (path) => path !== '' && (packages[path].dev !== true || inPages.includes(path));
  const shipped = Object.keys(packages).filter(isShipped);
  const itself = purlOf(name, version);
  // A package may be there several times in one version.
  const components = new Map();
  const needs = new Map([[itself, new Set()]]);
  for (const path of shipped) {
    const component = componentOf(path, packages[path], inPages.includes(path));
    components.set(component['bom-ref'], component);
  }
  for (const path of ['', ...shipped]) {
    const ref = path === '' ? itself : purlOf(nameOf(path), packages[path].version);
    const found = needs.get(ref) ?? new Set();
    const { dependencies, optionalDependencies, devDependencies, peerDependencies } = packages[path];
    for (const needed of Object.keys({
      ...dependencies,
      ...optionalDependencies,
      ...devDependencies,
      ...peerDependencies,
    })) {
      const at = resolve(packages, path, needed);
      if (at !== undefined && isShipped(at)) found.add(purlOf(needed, packages[at].version));
    }
    needs.set(ref, found);
  }
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(Buffer.concat([lockfile, Buffer.from(inPages.join())]))}`,
    version: 1,
    metadata: {
      ...timestamp(),
      component: { type: 'application', 'bom-ref': itself, name, version, purl: itself, ...licensesOf(license) },
    },
    components: [...components.values()].sort(byRef),
    dependencies: [...needs].map(([ref, dependsOn]) => ({ ref, dependsOn: [...dependsOn].sort() })),
  };
}

function componentOf(path, { version, integrity, license, dev, devOptional }, isInPages) {
  const isOfDevelopment = dev === true || devOptional === true;
  const fullName = nameOf(path);
  const purl = purlOf(fullName, version);
  const [group, name] = fullName.startsWith('@') ? fullName.split('/') : [undefined, fullName];
  return {
    type: 'library',
    'bom-ref': purl,
    ...(group === undefined ? {} : { group }),
    name,
    version,
    scope: devOptional === true && !isInPages ? 'optional' : 'required',
    ...(integrity === undefined ? {} : { hashes: integrity.split(' ').map(hashOf) }),
    ...licensesOf(license),
    purl,
    properties: [
      { name: 'model-gateway:part', value: isInPages && isOfDevelopment ? 'pages of the console' : 'program' },
    ],
  };
}

function hashOf(integrity) {
  const [algorithm, digest] = integrity.split(/-(.*)/s);
  return { alg: hashNames[algorithm], content: Buffer.from(digest, 'base64').toString('hex') };
}

function licensesOf(license) {
  if (license === undefined) return {};
  if (/ (OR|AND|WITH) /.test(license)) return { licenses: [{ expression: license }] };
  return { licenses: [{ license: /^SEE |^UNLICENSED$/.test(license) ? { name: license } : { id: license } }] };
}

export function purlOf(name, version) {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}

function nameOf(path) {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

/** As Node looks for it: beside the package, then in each folder above. */
function resolve(packages, from, name) {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    const path = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`;
    if (packages[path] !== undefined) return path;
    if (folder === '') return undefined;
  }
}

/** Of these bytes, in the form of version 8 (a custom one). */
function uuidOf(bytes) {
  const hex = createHash('sha256').update(bytes).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** Only where the build's time is given, as reproducible builds do. */
function timestamp() {
  const seconds = process.env['SOURCE_DATE_EPOCH'];
  return seconds === undefined ? {} : { timestamp: new Date(Number(seconds) * 1_000).toISOString() };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const text = `${JSON.stringify(billOfMaterials(), undefined, 2)}\n`;
  const [file] = process.argv.slice(2);
  if (file === undefined) process.stdout.write(text);
  else writeFileSync(file, text);
}
