/** The dialog that decides on an account's credit line. */
import { TextInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import type { CreditLineAnswer } from '../../../api/types.ts';
import { exactMoneyText, localDecimals, typedAmount } from '../../../parts/format.ts';
import { creditLineKey } from '../../credit-line/credit-line.tsx';
import { Act } from '../parts/act.tsx';
import { answerKey } from '../parts/load.tsx';
import { isAmount } from '../sums/usd.ts';

interface CreditLineDialogProps {
  /** The account in the API. */
  readonly path: string;
  readonly name: string;
  readonly onClose: () => void;
}

export default function CreditLineDialog({ path, name, onClose }: CreditLineDialogProps) {
  const { t, i18n } = useTranslation();
  const [typed, setTyped] = useState('');
  const amount = typedAmount(typed);
  const isFine = isAmount(amount) || /^0+(\.0+)?$/.test(amount);
  return (
    <Act
      opened
      stale={[answerKey(path), creditLineKey(`${path}/credit-line`)]}
      onClose={onClose}
      title={t('client.creditLine.setTitle', { name })}
      text={t('client.creditLine.setText')}
      action={t('client.creditLine.set')}
      missing={!isFine}
      act={async (reason) => {
        const { line } = await send<CreditLineAnswer>('POST', `${path}/credit-line`, { amount, reason });
        return t('client.creditLine.wasSet', { amount: exactMoneyText(line?.amount ?? '0', i18n.language) });
      }}
    >
      <TextInput
        label={t('client.creditLine.amount')}
        placeholder={localDecimals('500', i18n.language)}
        required
        inputMode="decimal"
        data-autofocus
        value={typed}
        error={typed === '' || isFine ? undefined : t('operator.ask.amountWrong')}
        onChange={({ currentTarget }) => setTyped(currentTarget.value)}
      />
    </Act>
  );
}
