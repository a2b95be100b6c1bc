@rem Windows has no exec: `npm start` finds this file instead, as cmd looks into the current folder first.
@%*
