/** The dialogs that add to a budget for its period, and end one. */
import { Button, Group, Modal, Stack, Text, Textarea, TextInput } from '@mantine/core';
import { type FormEvent, type ReactNode, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../api/client.ts';
import { typedAmount } from '../format.ts';
import { ErrorState } from '../states.tsx';
import { useWork } from '../use-work.ts';
import { isAmount } from './budget-amount.ts';
import { type BudgetPlace, useBudgetsChanged } from './budget-place.ts';
import { type BudgetLine, budgetName } from './budget-texts.ts';

interface DialogProps {
  readonly line: BudgetLine | undefined;
  readonly place: BudgetPlace;
  readonly onClose: () => void;
}

export function AddToBudget({ line, place, onClose }: DialogProps) {
  const { t } = useTranslation();
  const title = line && t('client.budgets.addTitle', { name: budgetName(line.row, line.state) });
  return (
    <Modal opened={line !== undefined} onClose={onClose} title={title} size="md">
      {line !== undefined && <AddForm line={line} place={place} onClose={onClose} />}
    </Modal>
  );
}

function AddForm({ line, place, onClose }: DialogProps & { readonly line: BudgetLine }) {
  const { t } = useTranslation();
  const changed = useBudgetsChanged(place);
  const [amount, setAmount] = useState('');
  const [reason, setReason] = useState('');
  const { busy, problem, run } = useWork((error) => error);
  const isFine = isAmount(typedAmount(amount));
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!isFine || reason.trim() === '') return;
    await run(async () => {
      const addition = { scope: line.state!.scope, amount: typedAmount(amount), reason: reason.trim() };
      await send('POST', `${place.base}/budgets/additions`, addition);
      onClose();
      await changed(t('client.budgets.added'));
    });
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <Stack>
        <Text fz="sm">{t('client.budgets.addWords')}</Text>
        <TextInput
          label={t('shell.word.amount')}
          required
          data-autofocus
          inputMode="decimal"
          value={amount}
          error={amount === '' || isFine ? undefined : t('client.budgets.amountWrong')}
          onChange={({ currentTarget }) => setAmount(currentTarget.value)}
        />
        <Reason value={reason} onChange={setReason} />
        {problem !== undefined && <ErrorState error={problem} />}
        <Group justify="flex-end">
          <Button type="submit" loading={busy}>
            {t('client.budgets.add')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

interface ReasonProps {
  readonly value: string;
  readonly onChange: (text: string) => void;
  readonly error?: ReactNode;
}

export function Reason({ value, onChange, error }: ReasonProps) {
  const { t } = useTranslation();
  return (
    <Textarea
      label={t('client.budgets.reason')}
      required
      maxLength={500}
      autosize
      minRows={2}
      value={value}
      error={error}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
    />
  );
}

export function EndBudget({ line, place, onClose }: DialogProps) {
  const { t } = useTranslation();
  const title = line && t('client.budgets.endTitle', { name: budgetName(line.row, line.state) });
  return (
    <Modal opened={line !== undefined} onClose={onClose} title={title} size="md">
      {line !== undefined && <EndForm line={line} place={place} onClose={onClose} />}
    </Modal>
  );
}

function EndForm({ line, place, onClose }: DialogProps & { readonly line: BudgetLine }) {
  const { t } = useTranslation();
  const changed = useBudgetsChanged(place);
  const [reason, setReason] = useState('');
  const { busy, problem, run } = useWork((error) => error);
  const isOperator = place.authority === 'operator';
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (isOperator && reason.trim() === '') return;
    await run(async () => {
      await send('DELETE', `${place.base}/budgets/${line.row.id}`, isOperator ? { reason: reason.trim() } : undefined);
      onClose();
      await changed(t('client.budgets.endDone'));
    });
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <Stack>
        <Text fz="sm">{t('client.budgets.endWords')}</Text>
        {isOperator && <Reason value={reason} onChange={setReason} />}
        {problem !== undefined && <ErrorState error={problem} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t('shell.cancel')}
          </Button>
          <Button type="submit" color="red" loading={busy}>
            {t('client.budgets.end')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
