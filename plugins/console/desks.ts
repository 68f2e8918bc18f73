/** The services that the console shows, in one place. */
export {
  accountDesk,
  bodyDesk,
  configDesk,
  moneyDesk,
  priceDesk,
  probeDesk,
  requestDesk,
  shopDesk,
  taskDesk,
  upstreamDesk,
} from '../../core/desk.ts';
export { accounts, catalog, database, ledger, multipliers, plans, pool, shop } from '../../core/vocabulary.ts';
