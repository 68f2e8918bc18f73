/** What the crowds' processes are asked; each answer is a number. */
export type CrowdOrder =
  | { readonly kind: 'vendor' | 'waiting' | 'read' | 'leave' }
  | { readonly kind: 'open'; readonly port: number; readonly count: number; readonly path?: string | undefined };
