/** `GET /openapi.json`: the description of the endpoints that this gateway offers, made from their own definitions. */
import { definePlugin, type Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { z } from '../../core/contract/schema.ts';
import packageFile from '../../package.json' with { type: 'json' };
import { keyRules } from '../common/domain/accounts.ts';
import { errorShape } from '../common/domain/error-shape.ts';
import { catalog, type ModelKind } from '../common/domain/models.ts';
import { envelopeAnswer } from '../common/kit/error-envelope.ts';
import { documentOf } from './document.ts';

export default definePlugin({
  name: 'openapi',
  config: z.strictObject({}),
  services: { requires: [keyRules], optional: [catalog, errorShape] },
  setup: (host) => ({
    endpoints: [
      {
        method: 'GET',
        path: '/openapi.json',
        operation: 'openapi',
        describes: [{ summary: 'Describes this interface.' }],
        body: 'none',
        keyless: true,
        unlogged: true,
        charges: false,
        renderError: envelopeAnswer,
        handle: () => ({
          status: 200,
          headers: { 'content-type': 'application/json', 'cache-control': 'no-cache' },
          // Made again: a reload may change where keys are expected.
          body: JSON.stringify(describe(host)),
        }),
      },
    ],
  }),
});

function describe(host: Host): object {
  const rules = host.get(keyRules);
  const members = host.find(errorShape)?.members(new GatewayError('not_found', ''), '');
  return documentOf(host.endpoints(), {
    gateway: host.gateway,
    version: packageFile.version,
    carriers: rules.carriers(),
    needsKey: (endpoint) => rules.needsKey(endpoint),
    modelOf: (kind: ModelKind, hasImage: boolean) =>
      host
        .find(catalog)
        ?.list()
        .find(
          (model) =>
            model.kind === kind && model.prices !== undefined && (hasImage || model.limits?.needsImage !== true),
        )?.id,
    errorMembers: members === undefined ? undefined : Object.keys(members),
  });
}
