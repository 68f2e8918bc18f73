/** Shapes of requests: the members that a decoder reads. Members that it does not read are found at any depth. Pure. */

import { isObject, type JsonObject } from '../../../core/json/json.ts';
import { type DroppedParameters, hasEffect } from '../../common/canonical/dropped-parameters.ts';

/** An object's members. Lists stand for their elements. */
export interface Shape {
  /** Members that the decoder reads, or records as dropped by itself. */
  readonly read: ReadonlySet<string>;
  /** Members without effect: type names, and ids and states that answers carry and histories repeat. */
  readonly idle: ReadonlySet<string>;
  /** Shapes of members that hold objects. Members without a shape are not inspected. */
  readonly inside: ReadonlyMap<string, Shape | Variants>;
  /** The decoder records the other members by itself. */
  readonly isOpen?: true;
}

/** The shape of an object with several types; undefined: the decoder records or refuses the whole object. */
export type Variants = (value: JsonObject) => Shape | undefined;

/** `read` and `idle`: names, separated by spaces. */
export function shape(read: string, inside: Readonly<Record<string, Shape | Variants>> = {}, idle = ''): Shape {
  return { read: namesIn(read), idle: namesIn(idle), inside: new Map(Object.entries(inside)) };
}

/** A shape in which only some members are inspected: the decoder records the others by itself. */
export function openShape(inside: Readonly<Record<string, Shape | Variants>>): Shape {
  return { ...shape(Object.keys(inside).join(' '), inside), isOpen: true };
}

function namesIn(text: string): ReadonlySet<string> {
  return new Set(text.split(/\s+/).filter((name) => name !== ''));
}

/** Shapes by `type`; `usual` applies to objects without a type. */
export function byType(shapes: Readonly<Record<string, Shape>>, usual?: string): Variants {
  const known = new Map(Object.entries(shapes));
  return ({ type }) =>
    typeof type === 'string' ? known.get(type) : usual === undefined ? undefined : known.get(usual);
}

/** Records unread members below the top level; the decoder handles those of the top level. */
export function recordUnread(
  json: JsonObject,
  root: Shape,
  dropped: DroppedParameters,
  nameOf: (path: string) => string = (path) => path,
): void {
  for (const [member, inner] of root.inside)
    visit(json[member], inner, [member], (path) => dropped.dropField(nameOf(path)));
}

type Step = string | number;

function visit(value: unknown, kind: Shape | Variants, steps: Step[], note: (path: string) => void): void {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      steps.push(index);
      visit(value[index], kind, steps, note);
      steps.pop();
    }
    return;
  }
  if (!isObject(value)) return;
  const known = typeof kind === 'function' ? kind(value) : kind;
  if (known === undefined) return;
  for (const member in value) {
    if (!Object.hasOwn(value, member) || known.idle.has(member)) continue;
    steps.push(member);
    visitMember(value[member], member, known, steps, note);
    steps.pop();
  }
}

function visitMember(value: unknown, member: string, known: Shape, steps: Step[], note: (path: string) => void): void {
  if (!known.read.has(member)) {
    if (known.isOpen !== true && hasEffect(value)) note(pathOf(steps));
    return;
  }
  const inner = known.inside.get(member);
  if (inner !== undefined) visit(value, inner, steps, note);
}

function pathOf(steps: readonly Step[]): string {
  return steps.reduce<string>((path, step) => {
    if (typeof step === 'number') return `${path}[${step}]`;
    return path === '' ? step : `${path}.${step}`;
  }, '');
}
