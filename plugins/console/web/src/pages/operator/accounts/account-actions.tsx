/** What an operator changes about an account: money, plan, multiplier, what is kept of its calls, admission. */
import { Button, Menu } from '@mantine/core';
import {
  IconChevronDown,
  IconDatabase,
  IconDatabaseOff,
  IconMinus,
  IconPencil,
  IconPlayerPause,
  IconPlayerPlay,
  IconPlus,
  IconStack2,
  IconX,
} from '@tabler/icons-react';
import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { has, useMe } from '../../../api/session.ts';
import { accountName } from '../../../parts/account-name.ts';
import { useSearchState } from '../../../parts/search-state.ts';
import { useActs } from '../parts/act.tsx';
import type { Account, AccountDetail } from '../types.ts';
import {
  AdmissionDialog,
  MoneyDialog,
  MultiplierDialog,
  PlanDialog,
  RenameDialog,
  RetentionDialog,
} from './account-dialogs.tsx';

const dialogs = ['credit', 'debit', 'plan', 'multiplier', 'rename', 'retention', 'admission'] as const;
type Dialog = (typeof dialogs)[number];

export function AccountActions({ detail }: { readonly detail: AccountDetail }) {
  const { t } = useTranslation();
  const me = useMe();
  const [search, change] = useSearchState();
  const wanted = dialogs.find((one) => one === search['act']);
  const [dialog, setDialog] = useState<Dialog>();
  useEffect(() => {
    if (wanted === undefined) return;
    setDialog(wanted);
    change({ act: undefined });
  });
  if (!useActs()) return null;
  const { name: ownName } = detail.account;
  const account = { ...detail.account, name: accountName({ name: ownName, person: detail.person }) };
  const close = () => setDialog(undefined);
  const withMoney = has(me, 'wallet');
  return (
    <>
      {withMoney && (
        <Button leftSection={<IconPlus size={15} />} onClick={() => setDialog('credit')}>
          {t('operator.people.accounts.credit')}
        </Button>
      )}
      <Menu position="bottom-end" shadow="md">
        <Menu.Target>
          <Button variant="default" rightSection={<IconChevronDown size={15} />}>
            {t('shell.more')}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {withMoney && (
            <Menu.Item leftSection={<IconMinus size={15} />} onClick={() => setDialog('debit')}>
              {t('operator.people.accounts.debit')}
            </Menu.Item>
          )}
          {has(me, 'plans') && (
            <Menu.Item leftSection={<IconStack2 size={15} />} onClick={() => setDialog('plan')}>
              {t('operator.people.accounts.changePlan')}
            </Menu.Item>
          )}
          <Menu.Item leftSection={<IconX size={15} />} onClick={() => setDialog('multiplier')}>
            {t('operator.people.accounts.changeMultiplier')}
          </Menu.Item>
          <Menu.Item leftSection={<IconPencil size={15} />} onClick={() => setDialog('rename')}>
            {t('operator.people.accounts.rename')}
          </Menu.Item>
          <RetentionItem account={account} onClick={() => setDialog('retention')} />
          <Menu.Divider />
          <Menu.Item
            color={account.disabled ? undefined : 'red'}
            leftSection={account.disabled ? <IconPlayerPlay size={15} /> : <IconPlayerPause size={15} />}
            onClick={() => setDialog('admission')}
          >
            {account.disabled ? t('operator.people.accounts.enable') : t('operator.people.accounts.disable')}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {(dialog === 'credit' || dialog === 'debit') && <MoneyDialog account={account} verb={dialog} onClose={close} />}
      {dialog === 'plan' && <PlanDialog account={account} onClose={close} />}
      {dialog === 'multiplier' && <MultiplierDialog account={account} onClose={close} />}
      {dialog === 'rename' && <RenameDialog account={account} from={ownName} onClose={close} />}
      {dialog === 'retention' && <RetentionDialog account={account} onClose={close} />}
      {dialog === 'admission' && <AdmissionDialog account={account} onClose={close} />}
    </>
  );
}

function RetentionItem({ account, onClick }: { readonly account: Account; readonly onClick: () => void }) {
  const { t } = useTranslation();
  const keepsNothing = account.retention === 'none';
  return (
    <Menu.Item
      leftSection={keepsNothing ? <IconDatabase size={15} /> : <IconDatabaseOff size={15} />}
      onClick={onClick}
    >
      {t(`operator.people.accounts.retention.${keepsNothing ? 'default' : 'none'}`)}
    </Menu.Item>
  );
}
