/** `model-gateway`: the contract between a plugin and the gateway. Begin with `contract.ts`. */
export * from '../../../core/contract/commands.ts';
export * from '../../../core/contract/contract.ts';
export * from '../../../core/contract/errors.ts';
export * from '../../../core/contract/extensions.ts';
export * from '../../../core/contract/message.ts';
export * from '../../../core/contract/process-group.ts';
export * from '../../../core/contract/reloadable.ts';
export * from '../../../core/contract/remarks.ts';
export * from '../../../core/contract/schema.ts';
export * from '../../../core/contract/secret.ts';
export * from '../../../core/contract/table.ts';
export * from '../../../core/contract/upstream-failures.ts';
