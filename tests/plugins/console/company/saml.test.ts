/** Companies that sign in by SAML 2.0: a real library's identity provider on loopback, and responses that are not what they seem. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { Clock, Log } from '../../../../core/contract/host-tools.ts';
import { database } from '../../../../plugins/common/domain/database.ts';
import { refreshMetadata, refreshStatements } from '../../../../plugins/console/company/saml/refresh.ts';
import { companyTables } from '../../../../plugins/console/company/tables.ts';
import { type FakeDns, startDns } from '../../../helpers/fake-dns.ts';
import {
  type Issued,
  type Otherwise,
  type RealSaml,
  type SamlPerson,
  startRealSaml,
} from '../../../helpers/real-saml.ts';
import { temporaryDirectory } from '../../../helpers/temporary-directory.ts';
import type { Browser } from '../browser.ts';
import { clientOf, startConsole, type TestConsole } from '../start-console.ts';

const origin = 'http://gateway.test';
let testbed: TestConsole;
let dns: FakeDns;
let acme: RealSaml;
let owner: Browser;
let id: string;

before(async () => {
  dns = await startDns();
  testbed = await startConsole(`origin: ${origin}
sign_up: open
throttle: { per_address: 1000 }
companies: { private_providers: true, dns: ["${dns.address}"] }`);
  owner = await clientOf(testbed, 'olga@example.test');
  const { saml, redirectUri } = (await owner.send('/members/sign-in')).json;
  id = redirectUri.split('/').at(-1);
  assert.deepEqual(saml, { acs: `${origin}/console/saml/${id}`, entityId: `${origin}/console/saml/${id}/metadata` });
  const metadata = await testbed.browser().send(`/console/saml/${id}/metadata`);
  assert.match(metadata.text, /WantAssertionsSigned="true"/);
  acme = await startRealSaml(metadata.text);
  await owner.send('/members/sign-in/domains', { body: { domain: 'acme.test' } });
  const { record } = (await owner.send('/members/sign-in')).json.domains[0];
  dns.texts.set(record.name, [record.value]);
  await owner.send('/members/sign-in/domains/acme.test/verify', { method: 'POST' });
  const saved = await save({ metadata: acme.metadata() });
  assert.equal(saved.status, 200, saved.text);
});
after(async () => {
  await testbed.stop();
  acme.close();
  dns.close();
});

const save = (more: object) =>
  owner.send('/members/sign-in/saml', {
    body: {
      ...{ name: 'Acme', role: 'viewer' },
      groups: [{ claim: 'http://acme.test/groups', value: 'search', role: 'developer', project: 'search' }],
      ...more,
    },
  });
const eve: SamlPerson = { nameId: 'eve-1', attributes: { email: ['Eve@acme.test'], displayName: ['Eve'] } };

async function begin(browser = testbed.browser(), callbackURL = '/console/keys') {
  const begun = await browser.send('/auth/sign-in/social', { body: { provider: id, callbackURL } });
  assert.equal(begun.status, 200, begun.text);
  return { browser, url: String(begun.json.url) };
}

/** As a browser does it: the provider's form comes from another site, without the cookies that are not for it. */
async function post({ form }: Pick<Issued, 'form'>): Promise<URL> {
  const posted = await fetch(`${testbed.origin}/console/saml/${id}`, {
    method: 'POST',
    redirect: 'manual',
    headers: { origin: 'https://login.acme.test', 'sec-fetch-site': 'cross-site' },
    body: new URLSearchParams(form),
  });
  assert.equal(posted.status, 303, await posted.text());
  return new URL(posted.headers.get('location')!, origin);
}
const errorOf = (to: URL) => to.searchParams.get('error') ?? undefined;

async function land(browser: Browser, to: URL) {
  if (errorOf(to) !== undefined) return { browser, error: errorOf(to), to };
  const landed = await browser.send(to.pathname + to.search, { headers: { 'sec-fetch-site': 'cross-site' } });
  const end = new URL(landed.headers.get('location')!, origin);
  return { browser, error: errorOf(end), to: end };
}

async function signIn(person: SamlPerson, otherwise?: Otherwise) {
  const { browser, url } = await begin();
  return land(browser, await post(await acme.issue(url, person, otherwise)));
}

/** A response with these changes, made or signed by the provider itself, is refused before it counts. */
async function refused(otherwise: Otherwise, person = eve) {
  const { url } = await begin();
  return errorOf(await post(await acme.issue(url, person, otherwise)));
}

async function forged(forge: (xml: string) => string) {
  const { url } = await begin();
  const { form, xml } = await acme.issue(url, eve);
  const changed = forge(xml);
  assert.notEqual(changed, xml);
  return errorOf(await post({ form: { ...form, SAMLResponse: Buffer.from(changed).toString('base64') } }));
}

const me = async (browser: Browser) => (await browser.send('/me')).json;
const rows = async (text: string) => {
  const { orm, schema } = testbed.gateway.find(database)!;
  const found = await orm.execute(sql.raw(text.replaceAll('{schema}', schema)));
  return ((found as { rows?: unknown[] }).rows ?? found) as Record<string, unknown>[];
};

test('people of the domain become members with role and project of their groups, and come back to the page that they left', async () => {
  const first = await signIn(eve);
  assert.deepEqual([first.error, first.to.pathname], [undefined, '/console/keys']);
  const { account, person } = await me(first.browser);
  assert.deepEqual([account.role, person.email, person.providerOnly], ['viewer', 'eve@acme.test', true]);
  const groups = { ...eve.attributes, 'http://acme.test/groups': ['other', 'search'] };
  const dev = await signIn({ ...eve, attributes: groups });
  assert.equal((await me(dev.browser)).account.role, 'developer');
  assert.equal((await dev.browser.send('/keys', { body: { name: 'mine' } })).status, 200);
  assert.equal((await dev.browser.send('/keys')).json.rows[0].project, 'search');
  const mail = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress';
  assert.equal((await signIn({ nameId: 'mia@acme.test', format: mail })).error, undefined);
  assert.equal((await signIn(eve, { whole: true })).error, undefined, 'the response is signed too');
  assert.equal((await signIn({ ...eve, attributes: { email: ['eve@elsewhere.test'] } })).error, 'wrong_domain');
  assert.equal((await signIn({ ...eve, nameId: 'other' })).error, 'other_identity');
  assert.equal((await signIn({ nameId: 'no-mail' })).error, 'email_not_found');
});

test('a page of another site is not led to after a sign-in', async () => {
  for (const wanted of [
    'https://evil.test/',
    '//evil.test',
    '/console//evil.test',
    '/console/\\evil.test',
    '/v1/models',
  ]) {
    const { browser, url } = await begin(testbed.browser(), wanted);
    const { to } = await land(browser, await post(await acme.issue(url, eve)));
    assert.equal(to.href, `${origin}/console/`, wanted);
  }
});

test('a response counts once, for the browser that has asked, and for a request of this gateway', async () => {
  const { browser, url } = await begin();
  const issued = await acme.issue(url, eve);
  const both = await Promise.all([post(issued), post(issued)]);
  assert.deepEqual(both.map(errorOf).filter(Boolean), ['saml_response_used']);
  const back = both.find((to) => errorOf(to) === undefined)!;
  assert.equal((await land(testbed.browser(), back)).error, 'state_mismatch', 'another browser');
  assert.equal((await land(browser, back)).error, 'state_mismatch', 'another browser has used the handle up');
  const other = await begin();
  const again = await begin(other.browser);
  assert.equal(
    (await land(other.browser, await post(await acme.issue(other.url, eve)))).error,
    'state_mismatch',
    'the request before',
  );
  const right = await acme.issue(again.url, eve);
  const moved = { form: { ...right.form, RelayState: 'another' } };
  assert.equal((await land(again.browser, await post(moved))).error, 'state_mismatch');
  assert.equal(await refused({ tags: { InResponseTo: '' } }), 'saml_response', 'begun by the provider');
  assert.equal((await signIn(eve, { tags: { InResponseTo: '_of-another-gateway' } })).error, 'state_mismatch');
  const { status, json } = await testbed.browser().send('/auth/company/enter');
  assert.deepEqual([status, json.error.code], [404, 'not_available']);
});

test('a response that is for others, too early, too late, unsigned or signed in a weak way is refused', async () => {
  const at = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString();
  const cases: Record<string, Otherwise> = {
    'another audience': { tags: { Audience: 'https://other.test' } },
    'another recipient': { tags: { SubjectRecipient: 'https://other.test/acs' } },
    'another destination': { tags: { Destination: 'https://other.test/acs' } },
    'another issuer': { tags: { Issuer: 'https://other.test' } },
    'conditions over': { tags: { ConditionsNotOnOrAfter: at(-3) } },
    'confirmation over': { tags: { SubjectConfirmationDataNotOnOrAfter: at(-3) } },
    'not valid yet': { tags: { ConditionsNotBefore: at(3) } },
    'from the future': { tags: { IssueInstant: at(3) } },
    'no time': { tags: { ConditionsNotOnOrAfter: 'tomorrow' } },
    'another time zone': { tags: { ConditionsNotOnOrAfter: '2999-01-01T00:00:00+09:00' } },
    'no audience': { edit: (xml) => xml.replace(/<saml:AudienceRestriction>.*<\/saml:AudienceRestriction>/, '') },
    'no conditions': { edit: (xml) => xml.replace(/<saml:Conditions.*<\/saml:Conditions>/, '') },
    'an unknown condition': { edit: (xml) => xml.replace('</saml:Conditions>', '<saml:Unknown/></saml:Conditions>') },
    'no statement': { edit: (xml) => xml.replace(/<saml:AuthnStatement.*<\/saml:AuthnStatement>/, '') },
    'no bearer': { edit: (xml) => xml.replace('cm:bearer', 'cm:sender-vouches') },
    unsigned: { unsigned: true },
    'SHA-1': { algorithm: 'http://www.w3.org/2000/09/xmldsig#rsa-sha1' },
    'a key that is not registered': { key: 'two' },
    'a transient name': { edit: (xml) => xml.replace('nameid-format:persistent', 'nameid-format:transient') },
    'two assertions': { edit: (xml) => xml.replace(/(<saml:Assertion .*<\/saml:Assertion>)/, '$1$1') },
  };
  for (const [name, otherwise] of Object.entries(cases)) assert.equal(await refused(otherwise), 'saml_response', name);
  assert.equal(
    await refused({ tags: { StatusCode: 'urn:oasis:names:tc:SAML:2.0:status:Responder' } }),
    'access_denied',
  );
  assert.equal(
    await refused({ tags: { ConditionsNotOnOrAfter: at(-1) } }),
    undefined,
    'clocks may differ by two minutes',
  );
});

test('a signature that was wrapped, moved or made over another assertion counts for none (XSW 1 to 8)', async () => {
  const evil = (assertion: string) =>
    assertion
      .replace(/eve-1/, 'root-1')
      .replace(/Eve@acme/, 'root@acme')
      .replace(/ID="_a/, 'ID="_evil');
  const parts = (xml: string) => {
    const assertion = /<saml:Assertion .*<\/saml:Assertion>/s.exec(xml)![0];
    const signature = /<ds:Signature.*?<\/ds:Signature>/s.exec(assertion)![0];
    return { assertion, signature, bare: assertion.replace(signature, '') };
  };
  const withObject = (signature: string, inner: string) =>
    signature.replace('</ds:Signature>', `<ds:Object>${inner}</ds:Object></ds:Signature>`);
  const attacks: Record<string, (xml: string) => string> = {
    'a changed name': (xml) => xml.replace('eve-1', 'root-1'),
    'a changed attribute': (xml) => xml.replace('Eve@acme', 'root@acme'),
    'XSW1: the whole response in the signature of another response': (xml) => {
      const { signature } = parts(xml);
      const inner = xml.replace(signature, '');
      return evil(xml).replace('</samlp:Response>', `${withObject(signature, inner)}</samlp:Response>`);
    },
    'XSW2: a signature beside the response that it covers': (xml) => {
      const { signature } = parts(xml);
      return evil(xml).replace('<samlp:Status>', `${signature}${xml.replace(signature, '')}<samlp:Status>`);
    },
    'XSW3: another assertion before the signed one': (xml) => {
      const { assertion, bare } = parts(xml);
      return xml.replace(assertion, `${evil(bare)}${assertion}`);
    },
    'XSW4: the signed assertion in another one': (xml) => {
      const { assertion, bare } = parts(xml);
      return xml.replace(assertion, evil(bare).replace('</saml:Assertion>', `${assertion}</saml:Assertion>`));
    },
    'XSW5: the signature in another assertion, and the signed one behind': (xml) => {
      const { assertion, bare } = parts(xml);
      return xml.replace(assertion, `${evil(assertion)}${bare}`);
    },
    'XSW6: the signed assertion in the signature of another one': (xml) => {
      const { assertion, signature, bare } = parts(xml);
      return xml.replace(
        assertion,
        evil(assertion).replace(signature, signature.replace('</ds:Signature>', `${bare}</ds:Signature>`)),
      );
    },
    'XSW7: another assertion in extensions': (xml) => {
      const { assertion, bare } = parts(xml);
      return xml.replace(assertion, `<samlp:Extensions>${evil(bare)}</samlp:Extensions>${assertion}`);
    },
    'XSW8: the signed assertion in an object of the signature': (xml) => {
      const { assertion, signature, bare } = parts(xml);
      return xml.replace(assertion, evil(assertion).replace(signature, withObject(signature, bare)));
    },
    'the signed assertion under another name of a response': (xml) =>
      xml.replaceAll('samlp:Response', 'samlp:LogoutResponse'),
    'a comment in the name': (xml) => xml.replace('eve-1', 'eve<!-- -->-1'),
    'CDATA in the name': (xml) => xml.replace('eve-1', '<![CDATA[eve-1]]>'),
    'an instruction in the name': (xml) => xml.replace('eve-1', 'eve-1<?x y?>'),
    'an entity': (xml) => `<!DOCTYPE r [<!ENTITY e "eve-1">]>${xml.replace('>eve-1<', '>&e;<')}`,
    'an external document type': (xml) => `<!DOCTYPE r SYSTEM "${acme.metadataUrl}">${xml}`,
    'an unsigned assertion in a response with the signed one behind it': (xml) => {
      const { assertion, bare } = parts(xml);
      return xml.replace(assertion, evil(bare)).replace('</samlp:Response>', `${assertion}</samlp:Response>`);
    },
    'no XML': () => 'no XML',
    'an unclosed element': (xml) => xml.replace('</samlp:Response>', ''),
    'more elements than a response has': (xml) =>
      xml.replace('<samlp:Status>', `${'<a>'.repeat(9_000)}${'</a>'.repeat(9_000)}<samlp:Status>`),
  };
  for (const [name, forge] of Object.entries(attacks)) assert.equal(await forged(forge), 'saml_response', name);
  assert.equal((await rows(`select id from {schema}.console_people where email like 'root@%'`)).length, 0);
});

test('a response that is too large, or not for a provider here, is refused in bounded time', async () => {
  const { url } = await begin();
  const { form } = await acme.issue(url, eve);
  const large = await fetch(`${testbed.origin}/console/saml/${id}`, {
    method: 'POST',
    body: new URLSearchParams({ SAMLResponse: 'A'.repeat(400_000) }),
  });
  assert.equal(large.status, 413);
  assert.equal(errorOf(await post({ form: { ...form, SAMLResponse: 'A'.repeat(300_000) } })), 'saml_response');
  assert.equal(errorOf(await post({ form: { ...form, SAMLResponse: '*' } })), 'saml_response');
  const unknown = await testbed.browser().send(`/console/saml/company-0123456789abcdef`, { method: 'POST', body: '' });
  assert.match(unknown.headers.get('location')!, /oauth_provider_not_found/);
  assert.equal((await testbed.browser().send('/console/saml/other')).status, 404);
});

test('metadata that names no usable provider is refused at its field, and two certificates count at once', async () => {
  const refusedBy = async (metadata: string) => {
    const { status, json } = await save({ metadata });
    return [status, json.error?.field];
  };
  const good = acme.metadata();
  for (const [name, bad] of Object.entries({
    'no XML': 'x',
    'an entity': `<!DOCTYPE x [<!ENTITY e "x">]>${good.replace(/^<\?xml[^>]*\?>/, '')}`,
    'no role': good.replaceAll('IDPSSODescriptor', 'SPSSODescriptor'),
    'no address': good.replace('HTTP-Redirect', 'SOAP'),
    'an address that runs code': good.replace(/Location="[^"]*"/, 'Location="javascript:alert(1)"'),
    'an end that is over': good.replace('entityID', 'validUntil="2020-01-01T00:00:00Z" entityID'),
    'no name': good.replace(/entityID="[^"]*"/, 'entityID=""'),
    'nothing there': 'http://127.0.0.1:1/metadata',
  }))
    assert.deepEqual(await refusedBy(bad), [400, 'metadata'], name);
  acme.certificates = ['weak'];
  assert.deepEqual(await refusedBy(acme.metadata()), [400, 'metadata'], 'a key of 1024 bits');
  acme.certificates = ['one', 'two'];
  const saved = await save({ metadata: acme.metadataUrl });
  assert.equal(saved.json.provider.saml.certificates.length, 2, saved.text);
  assert.match(saved.json.provider.saml.certificates[0].fingerprint, /^(?:[0-9A-F]{2}:){31}[0-9A-F]{2}$/);
  for (const key of ['one', 'two'] as const) assert.equal((await signIn(eve, { key })).error, undefined, key);
  assert.equal((await owner.send('/members/sign-in/test', { method: 'POST' })).json.problem, null);
});

test('metadata at an address is read again after a day: a new certificate counts, and another provider at the address does not', async () => {
  acme.certificates = ['one'];
  assert.equal((await save({ metadata: acme.metadataUrl })).status, 200);
  const warned: unknown[] = [];
  const later = async () => {
    await rows(`update {schema}.console_company_providers set updated_at = updated_at - interval '2 days'`);
    const { orm, schema } = testbed.gateway.find(database)!;
    await refreshMetadata({
      store: refreshStatements(orm, companyTables(schema)),
      clock: { now: Date.now } as Clock,
      log: { warn: (...said: unknown[]) => warned.push(said) } as unknown as Log,
      reading: { fetch: fetch as never, isAnyAllowed: true },
    });
  };
  assert.equal(await refused({ key: 'two' }), 'saml_response');
  acme.certificates = ['one', 'two'];
  await later();
  assert.equal((await signIn(eve, { key: 'two' })).error, undefined);
  const { metadata } = acme;
  acme.metadata = () => metadata().replace('/entity"', '/another"');
  await later();
  acme.metadata = metadata;
  assert.equal(warned.length, 1);
  assert.equal((await signIn(eve)).error, undefined);
});

test('an operator sets the provider of an account by a file with its metadata, and groups of its owner stay', async () => {
  const command = testbed.gateway.commands.find(({ name }) => name === 'console company')!;
  const { account } = (await owner.send('/me')).json;
  const file = join(temporaryDirectory(), 'metadata.xml');
  await writeFile(file, acme.metadata());
  await assert.rejects(async () => command.run({ account: account.name, saml: file }), /--reason/);
  const { text } = await command.run({ account: account.name, saml: file, name: 'Acme too', reason: 'asked by mail' });
  assert.match(text!, /\(Acme too\)/);
  const { provider } = (await owner.send('/members/sign-in')).json;
  assert.deepEqual([provider.name, provider.groups.length, provider.saml.metadataUrl], ['Acme too', 1, '']);
  assert.equal((await signIn(eve)).error, undefined);
});

test('an owner who changes from SAML to another provider of the same name leaves no identity behind', async () => {
  const { browser } = await signIn(eve);
  assert.equal((await me(browser)).account.role, 'viewer');
  assert.equal((await save({ metadata: acme.metadataUrl })).status, 200);
  assert.equal((await browser.send('/me')).status, 200, 'the same provider keeps its sessions');
  const changed = await save({ metadata: acme.metadata().replace('/entity"', '/another"') });
  assert.equal(changed.status, 200);
  assert.equal((await browser.send('/me')).status, 401);
  assert.equal((await rows(`select id from {schema}.console_identities where provider_id = '${id}'`)).length, 0);
  const { json } = await owner.send('/members/audit');
  assert.equal(json.rows[0].action, 'sign-in.provider');
});
