/** Turns upgrades into sessions: the key, the model and the first settings. */
import type { ClientRequest } from '../../core/contract/message.ts';
import { type Caller, keyring } from '../common/domain/accounts.ts';
import { type Arrival, headOf } from './connections.ts';
import { constrained, resumes } from './live/constraints.ts';
import { LiveDialect } from './live/live.ts';
import { type LiveTokens, presentedToken } from './live/tokens.ts';
import { checkModel, modelOf, presentedSecret, withProtocols } from './realtime/arrival.ts';
import { RealtimeDialect } from './realtime/realtime.ts';
import type { RealtimeSecrets } from './realtime/secrets.ts';
import type { Opening, RelayTools } from './relay/charges.ts';
import type { RelayProtocol } from './relay/dialect.ts';
import { RelaySession } from './relay/session.ts';

/** Connects to the upstream before the upgrade is answered, so that a refusal is an HTTP answer. */
export async function acceptRealtime(
  tools: RelayTools,
  secrets: RealtimeSecrets | undefined,
  arrival: Arrival,
): Promise<void> {
  const { connections } = tools;
  const { upgrade, socket } = arrival;
  const request = withProtocols(upgrade.request);
  const { caller, model, settings } = await admitted(tools, secrets, request);
  const place = connections.reserve(caller, request.remoteAddress);
  const dialect = new RealtimeDialect(model);
  const head = headOf({ ...upgrade, request });
  const session = new RelaySession(tools, 'realtime', { dialect, head, caller, settings });
  const leave = () => session.abandon();
  socket.once('close', leave);
  try {
    await session.connect(model);
  } catch (error) {
    place.release();
    throw error;
  } finally {
    socket.off('close', leave);
  }
  const release = () => {
    place.release();
    session.abandon();
  };
  connections.accept(arrival, 'realtime', { ...place, release }, (connection) => session.begin(connection));
}

interface Admitted {
  readonly caller: Caller | undefined;
  readonly model: string;
  readonly settings?: Buffer | undefined;
}

async function admitted(
  { host, connections }: RelayTools,
  secrets: RealtimeSecrets | undefined,
  request: ClientRequest,
): Promise<Admitted> {
  const value = presentedSecret(request);
  if (value === undefined || secrets === undefined)
    return { model: modelOf(request), caller: await connections.authenticate(request) };
  const { keyId, model, session } = await secrets.find(value);
  checkModel(request, model);
  const caller = await host.find(keyring)?.callerOf(keyId, request.remoteAddress, request.headers);
  const settings = session === undefined ? undefined : Buffer.from(`{"type":"session.update","session":${session}}`);
  return { caller, model, settings };
}

/** The model comes with the first message, so the session is admitted after the upgrade. */
export async function acceptLive(
  tools: RelayTools,
  tokens: LiveTokens | undefined,
  protocol: RelayProtocol,
  arrival: Arrival,
): Promise<void> {
  const { connections } = tools;
  const { upgrade } = arrival;
  const { caller, ...terms } = await admittedToLive(tools, tokens, upgrade.request);
  const place = connections.reserve(caller, upgrade.request.remoteAddress);
  const dialect = new LiveDialect(protocol);
  const session = new RelaySession(tools, 'live', { dialect, head: headOf(upgrade), caller, ...terms });
  connections.accept(arrival, 'live', place, (connection) => session.begin(connection));
}

async function admittedToLive(
  { host, connections }: RelayTools,
  tokens: LiveTokens | undefined,
  request: ClientRequest,
): Promise<Pick<Opening, 'caller' | 'admit' | 'expiresAt'>> {
  const value = presentedToken(request);
  if (value === undefined || tokens === undefined) return { caller: await connections.authenticate(request) };
  const token = await tokens.find(value);
  return {
    caller: await host.find(keyring)?.callerOf(token.keyId, request.remoteAddress, request.headers),
    expiresAt: token.expiresAt,
    async admit(first) {
      await tokens.use(value, resumes(first));
      return constrained(first, token);
    },
  };
}
