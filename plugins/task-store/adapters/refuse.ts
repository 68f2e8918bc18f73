/** What a vendor's protocol has no words for: refused by the client's own name of it, or noted as left out. Pure. */
import { GatewayError } from '../../../core/errors.ts';
import type { JsonObject } from '../../../core/json.ts';
import type { Order } from '../contract.ts';

/** Clients of every protocol read this code; the message says what could be asked for in place of it. */
export const unsupportedCode = 'unsupported_by_model';

/** A 400 that names what the client wrote. */
export function unsupported(message: string, field: string): GatewayError {
  return new GatewayError('invalid_request', message, { field, code: unsupportedCode });
}

/** The client's own name of a member of its order. */
export function fieldOf(order: Order, member: keyof Order): string {
  return order.fields?.[member] ?? member;
}

/** Members of the client's that promise something about the result: without them it would be another one. */
const promises = ['mask', 'image', 'images', 'draft'];

/** Of the client's further members those that the vendor takes, and the names of the rest. Throws for a promise among these. */
export function pickExtras(
  order: Order,
  taken: ReadonlySet<string>,
): { readonly extras: JsonObject; readonly dropped: readonly string[] } {
  const extras: Record<string, unknown> = {};
  const dropped: string[] = [];
  for (const [name, value] of Object.entries(order.extra)) {
    if (taken.has(name)) extras[name] = value;
    else if (promises.includes(name) && value !== false) throw unsupported(`The model does not take "${name}".`, name);
    else dropped.push(name);
  }
  return { extras, dropped };
}

/** Refuses references of roles that the vendor cannot be shown. */
export function refuseRoles(order: Order, taken: ReadonlySet<string>): void {
  for (const { role, field } of order.references) {
    if (!taken.has(role)) throw unsupported(`The model does not take a reference of this kind (${role}).`, field);
  }
}

/** The client's names of those of these members that it has asked for, and that the vendor has no word for. */
export function leftOut(order: Order, ...members: readonly (keyof Order)[]): string[] {
  return members.filter((member) => order[member] !== undefined).map((member) => fieldOf(order, member));
}
